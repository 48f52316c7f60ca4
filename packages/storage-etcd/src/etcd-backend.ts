import { silentLogger, systemRuntime } from "@plinth/runtime";
import {
	type Commit,
	type CommitOptions,
	checkCommitLimits,
	checkGrowth,
	defaultLimits,
	evaluate,
	Inconsistent,
	type Mutation,
	type ReadOptions,
	StateStore,
	type StorageBackend,
	type StorageLimits,
	stamp,
} from "@plinth/storage";
import { CatchUp } from "./catch-up.ts";
import { EtcdClient } from "./client/etcd-client.ts";
import { EtcdError } from "./client/etcd-error.ts";
import { defaultPrefix, defaultRequestTimeoutMs, type EtcdOptions } from "./client/etcd-options.ts";
import { ResourceDecoder } from "./decode-resource.ts";
import { FollowedState } from "./followed-state.ts";
import { GroupCommit } from "./group-commit.ts";
import { Keys } from "./keys.ts";
import { load } from "./load.ts";
import { type EtcdRequestLimits, etcdRequestLimits, mostMutations } from "./request-limits.ts";

/** Options of the etcd backend. */
export interface EtcdBackendOptions extends EtcdOptions {
	/** Limits that differ from `defaultLimits`, and from `etcdLimits` where that differs. */
	readonly limits?: Partial<StorageLimits>;
	/** Where etcd's own flags differ from their defaults. */
	readonly requestLimits?: Partial<EtcdRequestLimits>;
}

/**
 * Opens a storage in etcd, and loads it. Eventual reads and watches are answered from memory, which a
 * watch on etcd keeps up to date; a commit has resolved when etcd has it and so has this memory.
 *
 * @throws Inconsistent where etcd can't be reached; ForeignData where other data is under the prefix;
 *   RangeError where a limit is more than a request to etcd can hold.
 */
export async function createEtcdBackend(options: EtcdBackendOptions): Promise<StorageBackend> {
	const { runtime = systemRuntime, log = silentLogger } = options;
	const requestLimits = { ...etcdRequestLimits, ...options.requestLimits };
	const limits = checkedLimits(options.limits, requestLimits);
	const keys = new Keys(options.prefix ?? defaultPrefix);
	const client = new EtcdClient(options);
	const timeoutMs = options.requestTimeoutMs ?? defaultRequestTimeoutMs;
	const closing = new AbortController();
	const context = {
		client,
		keys,
		decoder: new ResourceDecoder(keys),
		runtime,
		clock: runtime.clock,
		scheduler: runtime.scheduler,
		log,
		limits,
		requestLimits,
		timeoutMs,
		makeStore: () => new StateStore(runtime, limits),
		ownTransaction: (head: Uint8Array) => groups.ownTransaction(head),
	};
	let state: FollowedState;
	try {
		state = new FollowedState(context, await load(context, closing.signal));
	} catch (error) {
		client.close();
		throw error instanceof EtcdError
			? new Inconsistent(`can't load the storage: ${error.message}`, { cause: error })
			: error;
	}
	const catchUp = new CatchUp({ ...context, state });
	const groups = new GroupCommit({ ...context, state, catchUp });
	const following = state.follow(closing.signal);
	return new EtcdBackend({
		state,
		catchUp,
		groups,
		limits,
		stopFollowing: async () => {
			closing.abort(new Error("the storage was closed"));
			await following;
		},
		disconnect: () => client.close(),
	});
}

function checkedLimits(
	given: Partial<StorageLimits> = {},
	requestLimits: EtcdRequestLimits,
): StorageLimits {
	const mostBytes = Math.floor(requestLimits.maxRequestBytes * 0.8);
	const limits = {
		...defaultLimits,
		commitBytes: Math.min(defaultLimits.commitBytes, mostBytes),
		resourceBytes: Math.min(defaultLimits.resourceBytes, mostBytes),
		...given,
	};
	if (limits.mutations > mostMutations(requestLimits)) {
		throw new RangeError(
			`commits of ${limits.mutations} mutations: an etcd with --max-txn-ops=${requestLimits.maxTxnOps} takes at most ${mostMutations(requestLimits)}`,
		);
	}
	return limits;
}

interface Parts {
	readonly state: FollowedState;
	readonly catchUp: CatchUp;
	readonly groups: GroupCommit;
	readonly limits: StorageLimits;
	stopFollowing(): Promise<void>;
	disconnect(): void;
}

class EtcdBackend implements StorageBackend {
	readonly #parts: Parts;
	#closing: Promise<void> | undefined;

	constructor(parts: Parts) {
		this.#parts = parts;
	}

	read: StorageBackend["read"] = async (id, options) => (await this.#store(options)).read(id);

	list: StorageBackend["list"] = async (query, options) => {
		const snapshot = (await this.#store(options)).snapshot(query);
		return { resources: [...snapshot.resources()], version: snapshot.version };
	};

	snapshot: StorageBackend["snapshot"] = async (query, options) =>
		(await this.#store(options)).snapshot(query);

	listByOwner: StorageBackend["listByOwner"] = async (owner) =>
		(await this.#store()).listByOwner(owner);

	countByType: StorageBackend["countByType"] = async () => (await this.#store()).countByType();

	watchList: StorageBackend["watchList"] = (query, options) =>
		this.#parts.state.store.watch(query, options, (signal) => this.catchUp(signal));

	async commit(
		mutations: readonly Mutation[],
		{ fence, dryRun }: CommitOptions = {},
	): Promise<Commit> {
		this.#assertOpen();
		const { limits, groups, catchUp, state } = this.#parts;
		checkCommitLimits(mutations, limits);
		if (!dryRun) {
			return groups.commit(mutations, fence);
		}
		await (fence === undefined ? catchUp.newest() : catchUp.newestWithin(fence));
		const steps = evaluate(mutations, state.store);
		checkGrowth(state.store.bytes, steps, limits);
		return stamp(steps, state.store.version).commit;
	}

	async catchUp(signal: AbortSignal): Promise<string> {
		this.#assertOpen();
		signal.throwIfAborted();
		await this.#parts.catchUp.newest(signal);
		return this.#parts.state.store.version;
	}

	close(): Promise<void> {
		this.#closing ??= this.#close();
		return this.#closing;
	}

	async #close(): Promise<void> {
		const { groups, state, stopFollowing, disconnect } = this.#parts;
		await groups.settled();
		await stopFollowing();
		state.close();
		disconnect();
	}

	async #store({ consistency }: ReadOptions = {}): Promise<StateStore> {
		this.#assertOpen();
		if (consistency === "strong") {
			await this.#parts.catchUp.newest();
		}
		return this.#parts.state.store;
	}

	#assertOpen(): void {
		if (this.#closing !== undefined) {
			throw new Inconsistent("the storage is closed");
		}
	}
}
