import { unlessAborted } from "@plinth/runtime";
import {
	type CommitOptions,
	defaultStorageLimits,
	type Mutation,
	type ReadOptions,
	StateStore,
	type StorageBackend,
	StorageUnavailable,
	WatchClosed,
} from "@plinth/storage";
import type { Faults } from "../network/faults.ts";
import type { Revision, SharedStorage } from "./shared-storage.ts";

const unreachable = "the storage can't be reached";
const commitFailed = "the commit has failed";
const commitUnknown = "whether the commit was made is not known";

/** The messages of errors after which a commit may have been made. */
export const storageFailures: readonly string[] = [unreachable, commitFailed, commitUnknown];

/**
 * The storage of a cluster as one server sees it: complete, and some time ago. It sees its own commits at once, and catches
 * up where the contract of `StorageBackend` says so. While faults are on, commits fail before or after they are made.
 */
export function followerOf(shared: SharedStorage, faults: Faults): StorageBackend {
	const { runtime } = faults;
	const { incarnation } = shared;
	const store = new StateStore(runtime, defaultStorageLimits);
	const pending: Revision[] = [];
	const waiting = new Set<() => void>();
	let isFollowing = false;
	let isClosed = false;

	async function follow(): Promise<void> {
		if (isFollowing) {
			return;
		}
		isFollowing = true;
		for (let next = pending[0]; next !== undefined && !isClosed; next = pending[0]) {
			await faults.delay();
			pending.shift();
			store.apply(next.revision, next.changes);
			for (const wake of [...waiting]) {
				wake();
			}
		}
		isFollowing = false;
	}
	const followed = shared.follow((revision) => {
		pending.push(revision);
		void follow();
	});
	for (const resource of followed.base.resources.values()) {
		store.load(resource);
	}
	store.begin(followed.base.revision);
	for (const { revision, changes } of followed.since) {
		store.apply(revision, changes, { isReplayed: true });
	}

	function checkOpen(): void {
		if (isClosed || shared.incarnation !== incarnation) {
			throw new StorageUnavailable(unreachable);
		}
	}
	async function reached(revision: number, signal?: AbortSignal): Promise<void> {
		while (store.revision < revision) {
			checkOpen();
			const applied = Promise.withResolvers<void>();
			waiting.add(applied.resolve);
			try {
				await (signal === undefined ? applied.promise : unlessAborted(applied.promise, signal));
			} finally {
				waiting.delete(applied.resolve);
			}
		}
	}
	async function state({ consistency }: ReadOptions = {}): Promise<StateStore> {
		await faults.delay();
		checkOpen();
		if (consistency === "strong") {
			await reached(shared.revision);
		}
		return store;
	}
	async function catchUp(signal: AbortSignal, atLeast?: string): Promise<string> {
		if (atLeast === undefined || store.revision < Number(atLeast)) {
			await faults.delay();
			checkOpen();
			await reached(shared.revision, signal);
		}
		return store.version;
	}
	async function commit(mutations: readonly Mutation[], options: CommitOptions = {}) {
		await faults.delay();
		checkOpen();
		if (faults.strikes(0.02)) {
			throw new StorageUnavailable(commitFailed);
		}
		const made = shared.commit(mutations, options);
		if (faults.strikes(0.02)) {
			throw new StorageUnavailable(commitUnknown);
		}
		if (made.version !== "" && !options.dryRun) {
			await reached(Number(made.version));
		}
		await faults.delay();
		return made;
	}

	return {
		read: async (id, options) => (await state(options)).read(id),
		lookup: async (name, options) => (await state(options)).lookup(name),
		list: async (query, options) => {
			const snapshot = (await state(options)).snapshot(query);
			return { resources: [...snapshot.resources()], version: snapshot.version };
		},
		snapshot: async (query, options) => (await state(options)).snapshot(query, options?.heldBy),
		listByOwner: async (owner, options) => (await state(options)).listByOwner(owner, options),
		countByType: async () => (await state()).countByType(),
		countByTypeIn: async (unit, options) => (await state(options)).countByTypeIn(unit),
		watchList: (query, options) => store.watch(query, options, (signal) => catchUp(signal)),
		...{ catchUp, commit },
		close: async () => {
			isClosed = true;
			followed.stop();
			store.close(new WatchClosed("the storage was closed"));
			for (const wake of [...waiting]) {
				wake();
			}
		},
	};
}
