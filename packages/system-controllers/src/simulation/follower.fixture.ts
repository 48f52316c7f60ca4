import type { Resource } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { sleep } from "@plinth/runtime";
import type { SeededRuntime } from "@plinth/runtime/testing";
import {
	type CommitResult,
	createMemoryBackend,
	defaultStorageLimits,
	type Mutation,
	type ReadOptions,
	type StateChange,
	StateStore,
	type StorageBackend,
	WatchClosed,
} from "@plinth/storage";

/** The changes of one commit. */
export interface Revision {
	readonly version: number;
	readonly changes: readonly StateChange[];
	/** The previously stored resources, in the order of the changes. */
	readonly replaced: readonly (Resource | undefined)[];
}

/** The storage that several servers share. It serializes commits, like etcd. */
export class Origin {
	readonly #backend: StorageBackend;
	readonly #stored = new Map<string, Resource>();
	readonly #revisions: Revision[] = [];
	readonly #listeners: ((revision: Revision) => void)[] = [];
	#version = 0;

	constructor(runtime: SeededRuntime) {
		this.#backend = createMemoryBackend({ runtime });
	}

	/** The latest version. */
	get version(): number {
		return this.#version;
	}

	/** Everything that is stored, by the key of its name. */
	get stored(): ReadonlyMap<string, Resource> {
		return this.#stored;
	}

	/** Calls the listener with each revision, from the first on, within its commit. */
	onRevision(listener: (revision: Revision) => void): void {
		for (const revision of this.#revisions) {
			listener(revision);
		}
		this.#listeners.push(listener);
	}

	async commit(mutations: readonly Mutation[]): Promise<CommitResult> {
		const commit = await this.#backend.commit(mutations);
		if (commit.version === "") {
			return commit;
		}
		const changes = mutations.flatMap((mutation, at) => this.#changeOf(mutation, commit, at));
		const replaced = changes.map(({ resource }) => this.#stored.get(keyOf(resource)));
		for (const { op, resource } of changes) {
			if (op === "put") {
				this.#stored.set(keyOf(resource), resource);
			} else {
				this.#stored.delete(keyOf(resource));
			}
		}
		this.#version = Number(commit.version);
		const revision = { version: this.#version, changes, replaced };
		this.#revisions.push(revision);
		for (const listener of this.#listeners) {
			listener(revision);
		}
		return commit;
	}

	#changeOf(mutation: Mutation, { resources }: CommitResult, at: number): readonly StateChange[] {
		const resource = resources[at];
		if (mutation.op === "put" && resource !== undefined) {
			return [{ op: "put", resource }];
		}
		const stored = mutation.op === "delete" && this.#stored.get(nameKey(mutation.id));
		return stored ? [{ op: "delete", resource: stored }] : [];
	}
}

function keyOf({ id }: Resource): string {
	return id === undefined ? "" : nameKey(id);
}

/**
 * The storage as seen by one of several servers: eventual reads return a state that lags behind the origin by
 * some turns, or up to two seconds; strong reads wait for the origin.
 */
export function followerOf(origin: Origin, runtime: SeededRuntime): StorageBackend {
	const { scheduler, random, clock } = runtime;
	const store = new StateStore(runtime, defaultStorageLimits);
	store.begin(0);
	const revisions: Revision[] = [];
	let waiting: (() => void)[] = [];
	let isFollowing = false;

	async function delay(): Promise<void> {
		while (random.next() < 0.4) {
			await scheduler.pause();
		}
	}
	async function follow(): Promise<void> {
		for (let revision = revisions.shift(); revision !== undefined; revision = revisions.shift()) {
			await delay();
			if (random.next() < 0.05) {
				await sleep(clock, random.next() * 2_000);
			}
			store.apply(revision.version, revision.changes);
			const wake = waiting;
			waiting = [];
			for (const resolve of wake) {
				resolve();
			}
		}
		isFollowing = false;
	}
	origin.onRevision((revision) => {
		revisions.push(revision);
		if (!isFollowing) {
			isFollowing = true;
			scheduler.schedule(() => void follow());
		}
	});
	async function reached(version: number): Promise<void> {
		while (store.revision < version) {
			await new Promise<void>((resolve) => waiting.push(resolve));
		}
	}
	async function state({ consistency }: ReadOptions = {}): Promise<StateStore> {
		await delay();
		if (consistency === "strong") {
			await reached(origin.version);
		}
		return store;
	}

	return {
		read: async (id, options) => (await state(options)).read(id),
		lookup: async (name, options) => (await state(options)).lookup(name),
		list: async (query, options) => {
			const snapshot = (await state(options)).snapshot(query);
			return { resources: [...snapshot.resources()], version: snapshot.version };
		},
		snapshot: async (query, options) => (await state(options)).snapshot(query),
		listByOwner: async (owner, options) => (await state(options)).listByOwner(owner, options),
		countByType: async () => (await state()).countByType(),
		countByTypeIn: async (unit, options) => (await state(options)).countByTypeIn(unit),
		watchList: (query, options) => store.watch(query, options, () => reached(origin.version)),
		catchUp: async () => {
			await reached(origin.version);
			return store.version;
		},
		close: async () => store.close(new WatchClosed("the simulation is over")),
		async commit(mutations) {
			await delay();
			const commit = await origin.commit(mutations);
			await reached(Number(commit.version));
			await delay();
			return commit;
		},
	};
}
