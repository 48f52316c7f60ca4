import type { Resource } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { sleep } from "@plinth/runtime";
import type { SeededRuntime } from "@plinth/runtime/testing";
import {
	type Change,
	type Commit,
	createMemoryBackend,
	defaultLimits,
	type Mutation,
	type ReadOptions,
	StateStore,
	type StorageBackend,
	WatchClosed,
} from "@plinth/storage";

/** What one commit has changed. */
export interface Revision {
	readonly version: number;
	readonly changes: readonly Change[];
	/** What was stored under the names of the changes before, in their order. */
	readonly replaced: readonly (Resource | undefined)[];
}

/** The storage that several servers share: it decides commits one after the other, as etcd does. */
export class Origin {
	readonly #backend: StorageBackend;
	readonly #stored = new Map<string, Resource>();
	readonly #revisions: Revision[] = [];
	readonly #listeners: ((revision: Revision) => void)[] = [];
	#version = 0;

	constructor(runtime: SeededRuntime) {
		this.#backend = createMemoryBackend({ runtime });
	}

	/** The newest version. */
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

	async commit(mutations: readonly Mutation[]): Promise<Commit> {
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

	#changeOf(mutation: Mutation, { resources }: Commit, at: number): readonly Change[] {
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
 * The storage as one server of several has it: eventual reads are answered from a state that follows the
 * origin, some turns or up to two seconds behind; strong ones wait for it.
 */
export function followerOf(origin: Origin, runtime: SeededRuntime): StorageBackend {
	const { scheduler, random, clock } = runtime;
	const store = new StateStore(runtime, defaultLimits);
	store.begin(0);
	const revisions: Revision[] = [];
	let waiting: (() => void)[] = [];
	let isFollowing = false;

	async function someTime(): Promise<void> {
		while (random.next() < 0.4) {
			await scheduler.pause();
		}
	}
	async function follow(): Promise<void> {
		for (let revision = revisions.shift(); revision !== undefined; revision = revisions.shift()) {
			await someTime();
			if (random.next() < 0.05) {
				await sleep(clock, random.next() * 2_000);
			}
			store.apply(revision.version, revision.changes);
			const wake = waiting;
			waiting = [];
			for (const each of wake) {
				each();
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
		await someTime();
		if (consistency === "strong") {
			await reached(origin.version);
		}
		return store;
	}

	return {
		read: async (id, options) => (await state(options)).read(id),
		list: async (query, options) => {
			const snapshot = (await state(options)).snapshot(query);
			return { resources: [...snapshot.resources()], version: snapshot.version };
		},
		snapshot: async (query, options) => (await state(options)).snapshot(query),
		listByOwner: async (owner) => (await state()).listByOwner(owner),
		countByType: async () => (await state()).countByType(),
		countByTypeIn: async (unit, options) => (await state(options)).countByTypeIn(unit),
		watchList: (query, options) => store.watch(query, options, () => reached(origin.version)),
		catchUp: async () => {
			await reached(origin.version);
			return store.version;
		},
		close: async () => store.close(new WatchClosed("the simulation is over")),
		async commit(mutations) {
			await someTime();
			const commit = await origin.commit(mutations);
			await reached(Number(commit.version));
			await someTime();
			return commit;
		},
	};
}
