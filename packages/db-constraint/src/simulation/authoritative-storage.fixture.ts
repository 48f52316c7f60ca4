import type { Resource } from "@plinth/proto";
import { nameKey, newUlid } from "@plinth/resource";
import type { Fence } from "@plinth/runtime";
import {
	assignVersion,
	type CommitOptions,
	type CommitResult,
	changesNothing,
	checkCommitLimits,
	defaultStorageLimits,
	evaluateMutations,
	Fenced,
	firstRevisionAfterRestore,
	type Mutation,
	type StateChange,
	StateStore,
	type StorageBackend,
	type StorageIdentity,
	StorageUnavailable,
} from "@plinth/storage";
import type { Lifetime } from "./server-lifetime.fixture.ts";
import type { SimulatedLeases } from "./simulated-leases.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** Called synchronously with each commit that changes something. */
type Listener = (
	mutations: readonly Mutation[],
	commit: CommitResult,
	changes: readonly StateChange[],
	/** The lease that the commit is fenced by. */
	fence: Fence | undefined,
) => void;

/** The stored state of a deployment, independent of what its servers have seen of it. */
export class AuthoritativeStorage {
	readonly #sim: SimulationContext;
	readonly #listeners = new Set<Listener>();
	readonly #all = new Map<string, Resource>();
	readonly #leases: Pick<SimulatedLeases, "isCurrent">;
	#store: StateStore;
	#identity: StorageIdentity | undefined;

	/**
	 * @param leases - issue the fences of commits.
	 * @param isRestorable - whether it may be restored: then it has an identity.
	 */
	constructor(
		sim: SimulationContext,
		leases: Pick<SimulatedLeases, "isCurrent">,
		isRestorable: boolean,
	) {
		this.#sim = sim;
		this.#leases = leases;
		this.#store = new StateStore(sim.runtime, defaultStorageLimits);
		if (isRestorable) {
			this.#identity = {
				uid: newUlid(sim.runtime),
				incarnation: newUlid(sim.runtime),
				restores: 0,
			};
		}
	}

	/** The state. A restore replaces it. */
	get store(): StateStore {
		return this.#store;
	}

	/** The identity of the storage, if it may be restored. A restore changes the incarnation. */
	get identity(): StorageIdentity | undefined {
		return this.#identity;
	}

	/** All resources as they are now. */
	backUp(): readonly Resource[] {
		return [...this.all()];
	}

	/**
	 * Replaces the state by that of a backup, as another incarnation: at a version later than all that were issued. What
	 * servers send to the replaced one is never applied. All servers must have stopped.
	 */
	restore(backup: readonly Resource[]): void {
		const { runtime } = this.#sim;
		const revision = firstRevisionAfterRestore(runtime.clock.now(), [this.#store.revision]);
		if (this.#identity === undefined || revision === undefined) {
			throw new Error("the storage can't be restored");
		}
		const { incarnation: before, restores } = this.#identity;
		this.#identity = { ...this.#identity, incarnation: newUlid(runtime), restores: restores + 1 };
		this.#sim.trace.add("storage", () => `the incarnation ${before} ends`);
		this.#store = new StateStore(runtime, defaultStorageLimits);
		this.#all.clear();
		for (const resource of backup) {
			const restored = { ...resource, version: String(revision) };
			this.#store.load(restored);
			if (restored.id !== undefined) {
				this.#all.set(nameKey(restored.id), restored);
			}
		}
		this.#store.begin(revision);
	}

	/** All resources. */
	all(): Iterable<Resource> {
		return this.#all.values();
	}

	/** Calls the listener for each commit, until the returned function is called. */
	onCommit(listener: Listener): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	/** Commits like any storage. */
	commit(mutations: readonly Mutation[], { dryRun, fence }: CommitOptions = {}): CommitResult {
		const { store } = this;
		if (fence !== undefined && !this.#leases.isCurrent(fence)) {
			throw new Fenced(fence.lease);
		}
		checkCommitLimits(mutations, defaultStorageLimits);
		const steps = evaluateMutations(mutations, store);
		if (dryRun || changesNothing(steps)) {
			return assignVersion(steps, dryRun ? store.version : "").commit;
		}
		const revision = store.revision + 1;
		const { commit, changes } = assignVersion(steps, String(revision));
		store.apply(revision, changes);
		for (const { op, resource } of changes) {
			if (resource.id !== undefined) {
				const key = nameKey(resource.id);
				if (op === "put") {
					this.#all.set(key, resource);
				} else {
					this.#all.delete(key);
				}
			}
		}
		for (const listener of this.#listeners) {
			listener(mutations, commit, changes, fence);
		}
		return commit;
	}
}

/** The state as one lagging server sees it: complete, but some time ago. */
class Replica {
	readonly store: StateStore;
	readonly #sim: SimulationContext;
	readonly #pending: (readonly [number, readonly StateChange[]])[] = [];
	readonly #waiting = new Set<() => void>();
	#isCatchingUp = false;

	constructor(sim: SimulationContext, authoritative: AuthoritativeStorage, lifetime: Lifetime) {
		this.#sim = sim;
		this.store = new StateStore(sim.runtime, defaultStorageLimits);
		for (const resource of authoritative.all()) {
			this.store.load(resource);
		}
		this.store.begin(authoritative.store.revision);
		const stop = authoritative.onCommit((_mutations, { version }, changes) => {
			this.#pending.push([Number(version), changes]);
			void this.#catchUp();
		});
		lifetime.onEnd(stop);
	}

	/** Resolves once the replica has reached the revision. */
	async reached(revision: number): Promise<void> {
		while (this.store.revision < revision) {
			await new Promise<void>((resolve) => this.#waiting.add(resolve));
		}
	}

	async #catchUp(): Promise<void> {
		if (this.#isCatchingUp) {
			return;
		}
		this.#isCatchingUp = true;
		for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) {
			await this.#sim.delay();
			this.store.apply(...next);
			for (const resolve of this.#waiting) {
				resolve();
			}
			this.#waiting.clear();
		}
		this.#isCatchingUp = false;
	}
}

/**
 * The storage as seen by one server.
 *
 * @param isBehind - whether the server sees commits of other servers with a delay. It always sees its own
 *   commits, and strong reads are up to date.
 */
export function backendOf(
	sim: SimulationContext,
	authoritative: AuthoritativeStorage,
	lifetime: Lifetime,
	isBehind: boolean,
): StorageBackend {
	const replica = isBehind ? new Replica(sim, authoritative, lifetime) : undefined;
	const incarnation = authoritative.store;
	const store = replica?.store ?? incarnation;
	const now = () => replica?.reached(incarnation.revision);
	async function fresh({ consistency }: { readonly consistency?: string | undefined } = {}) {
		if (consistency === "strong") {
			await now();
		}
		return store;
	}
	return {
		read: async (id, options) => (await fresh(options)).read(id),
		lookup: async (name, options) => (await fresh(options)).lookup(name),
		list: async (query, options) => {
			const snapshot = (await fresh(options)).snapshot(query);
			return { resources: [...snapshot.resources()], version: snapshot.version };
		},
		snapshot: async (query, options) => (await fresh(options)).snapshot(query, options?.heldBy),
		listByOwner: async (owner, options) => store.listByOwner(owner, options),
		countByType: async () => store.countByType(),
		countByTypeIn: async (unit) => store.countByTypeIn(unit),
		watchList: (query, options) => store.watch(query, options, async () => now()),
		commit: async (mutations, options) => {
			if (authoritative.store !== incarnation) {
				throw new StorageUnavailable("the storage was replaced");
			}
			const commit = authoritative.commit(mutations, options);
			if (commit.version !== "" && !options?.dryRun) {
				await replica?.reached(Number(commit.version));
			}
			return commit;
		},
		catchUp: async () => {
			await now();
			return store.version;
		},
		close: async () => {},
	};
}
