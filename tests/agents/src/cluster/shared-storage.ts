import type { Resource } from "@plinth/proto";
import { nameKey, newUlid } from "@plinth/resource";
import { LocalLeases } from "@plinth/runtime";
import type { SeededRuntime } from "@plinth/runtime/testing";
import {
	assignVersion,
	type CommitOptions,
	type CommitResult,
	changesNothing,
	checkCommitLimits,
	decideCommit,
	defaultStorageLimits,
	Fenced,
	firstRevisionAfterRestore,
	type Mutation,
	type StateChange,
	StateStore,
} from "@plinth/storage";

/** What one commit has changed. */
export interface Revision {
	readonly revision: number;
	readonly changes: readonly StateChange[];
}

/** What followers begin with. */
export interface Base {
	readonly revision: number;
	readonly resources: ReadonlyMap<string, Resource>;
}

/** Is told what happens to a storage, while it happens. */
export interface StorageListener {
	committed(revision: Revision): void;
	/** The storage was restored: this is all that it has. */
	restored(base: Base): void;
}

/** The storage that all servers of a cluster share: it decides commits in one order. It can be restored from a backup. */
export class SharedStorage {
	readonly leases = new LocalLeases();
	readonly #runtime: SeededRuntime;
	readonly #listener: StorageListener;
	readonly #followers = new Set<(revision: Revision) => void>();
	#store: StateStore;
	#contents = new Map<string, Resource>();
	/** What new followers begin with: the changes since then are known. */
	#base: Base = { revision: 0, resources: new Map() };
	#sinceBase: Revision[] = [];
	#backup: readonly Resource[] | undefined;
	#incarnation: string;

	constructor(runtime: SeededRuntime, listener: StorageListener) {
		this.#runtime = runtime;
		this.#listener = listener;
		this.#incarnation = newUlid(runtime);
		this.#store = new StateStore(runtime, defaultStorageLimits);
		this.#store.begin(0);
	}

	get revision(): number {
		return this.#store.revision;
	}

	/** Another one after each restore. */
	get incarnation(): string {
		return this.#incarnation;
	}

	/** All that is stored, by the keys of names. */
	get contents(): ReadonlyMap<string, Resource> {
		return this.#contents;
	}

	/** What a follower begins with, and all revisions since. @param listener - called with those that follow. */
	follow(listener: (revision: Revision) => void): {
		readonly base: Base;
		readonly since: readonly Revision[];
		stop(): void;
	} {
		this.#followers.add(listener);
		return {
			...{ base: this.#base, since: [...this.#sinceBase] },
			stop: () => this.#followers.delete(listener),
		};
	}

	commit(
		mutations: readonly Mutation[],
		{ fence, dryRun, rebase, writtenBy }: CommitOptions = {},
	): CommitResult {
		const store = this.#store;
		checkCommitLimits(mutations, defaultStorageLimits);
		if (fence !== undefined && !this.leases.isCurrent(fence)) {
			throw new Fenced(fence.lease);
		}
		const { effects } = decideCommit(mutations, rebase, store, defaultStorageLimits);
		if (dryRun || changesNothing(effects)) {
			return assignVersion(effects, dryRun ? store.version : "").commit;
		}
		const revision = store.revision + 1;
		const { commit, changes } = assignVersion(effects, String(revision), writtenBy);
		store.apply(revision, changes);
		for (const { op, resource } of changes) {
			if (op === "put") {
				this.#contents.set(keyOf(resource), resource);
			} else {
				this.#contents.delete(keyOf(resource));
			}
		}
		const made = { revision, changes };
		this.#sinceBase.push(made);
		this.#listener.committed(made);
		for (const follower of this.#followers) {
			follower(made);
		}
		return commit;
	}

	/** Forgets what has changed so far: servers that start from now on don't know it. */
	compact(): void {
		this.#base = { revision: this.revision, resources: new Map(this.#contents) };
		this.#sinceBase = [];
	}

	takeBackup(): void {
		this.#backup = [...this.#contents.values()];
	}

	/** Restores the backup, if there is one: all that was written since is lost. All servers must have stopped. */
	restore(): boolean {
		const runtime = this.#runtime;
		const revision = firstRevisionAfterRestore(runtime.clock.now(), [this.revision]);
		if (this.#backup === undefined || revision === undefined) {
			return false;
		}
		this.#incarnation = newUlid(runtime);
		this.#store = new StateStore(runtime, defaultStorageLimits);
		const restored = this.#backup.map((resource) => ({ ...resource, version: String(revision) }));
		for (const resource of restored) {
			this.#store.load(resource);
		}
		this.#store.begin(revision);
		this.#contents = new Map(restored.map((resource) => [keyOf(resource), resource]));
		this.compact();
		this.#listener.restored(this.#base);
		return true;
	}
}

/** The key of a stored resource. */
export function keyOf({ id }: Pick<Resource, "id">): string {
	return id === undefined ? "" : nameKey(id);
}
