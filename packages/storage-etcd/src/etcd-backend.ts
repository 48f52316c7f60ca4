import type { Resource } from "@plinth/proto";
import type { ResourceName } from "@plinth/resource";
import {
	type Logger,
	type Runtime,
	silentLogger,
	systemRuntime,
	unlessAborted,
} from "@plinth/runtime";
import {
	assignVersion,
	type CommitBatch,
	type CommitOptions,
	type CommitResult,
	checkCommitLimits,
	checkGrowth,
	defaultStorageLimits,
	type EventStorage,
	evaluateMutations,
	type HistorySource,
	LoadCapacity,
	type Mutation,
	type ReadOptions,
	type ServerDirectory,
	StateStore,
	StateTooLarge,
	type StorageBackend,
	type StorageLimits,
	type StorageStatistics,
	StorageUnavailable,
	WatchDeliveries,
} from "@plinth/storage";
import { deadline } from "./client/deadline.ts";
import { EtcdClient } from "./client/etcd-client.ts";
import { EtcdError } from "./client/etcd-error.ts";
import { defaultPrefix, defaultRequestTimeoutMs, type EtcdOptions } from "./client/etcd-options.ts";
import { OtherCluster, WentBack } from "./client/store-position.ts";
import { GroupCommit } from "./commit/group-commit.ts";
import {
	type EtcdRequestLimits,
	etcdRequestLimits,
	mostMutations,
} from "./commit/request-limits.ts";
import { EtcdEventStorage } from "./events/etcd-event-storage.ts";
import { keepProving } from "./history/keep-proving.ts";
import { replaceIncarnation } from "./history/replace-incarnation.ts";
import { type HistoryLost, StoreHistory } from "./history/store-history.ts";
import { type EtcdStorageIdentity, openIdentity } from "./history/store-identity.ts";
import { Keys } from "./keys.ts";
import { EtcdServerDirectory } from "./servers/etcd-server-directory.ts";
import { CatchUp } from "./state/catch-up.ts";
import { ResourceDecoder, UnrecognizedData } from "./state/decode-resource.ts";
import { FollowedState } from "./state/followed-state.ts";
import { load } from "./state/load.ts";
import { NotReplayed, ReplayedState } from "./state/replayed-state.ts";
import { VersionOffset } from "./state/version-offset.ts";

/** Options of the etcd backend. */
export interface EtcdBackendOptions extends EtcdOptions {
	/** Limits that differ from the defaults: `defaultStorageLimits`, reduced to what a request to etcd can hold. */
	readonly limits?: Partial<StorageLimits>;
	/** Where watches wait for their turn, to be shared and measured; each storage has its own if absent. */
	readonly deliveries?: Pick<WatchDeliveries, "add">;
	/** The values of etcd's flags, if they differ from their defaults. */
	readonly requestLimits?: Partial<EtcdRequestLimits>;
	/** Called after each transaction in which etcd has stored commits of this server. Must not throw. */
	readonly onBatch?: (batch: CommitBatch) => void;
	/**
	 * Called once, when etcd has lost history that this storage has seen. From then on commits and strong
	 * reads fail as StorageUnavailable, and watches have ended; eventual reads still work, for inspection.
	 */
	readonly onFailed?: (failure: Error) => void;
	/** Aborts opening, which rejects with the signal's reason; has no effect once it is open. */
	readonly signal?: AbortSignal;
}

/** A storage in etcd. */
export interface EtcdBackend extends StorageBackend, HistorySource {
	/** The identity of the store. */
	readonly identity: EtcdStorageIdentity;
	/** Aborts when etcd has lost history that this storage has seen. */
	readonly historyLost: AbortSignal;
	/** The rows of events of all servers that share the prefix. */
	readonly events: EventStorage;
	/** The live servers that share the prefix. */
	readonly servers: ServerDirectory;
	/** What this server counts, also once it is closed. */
	statistics(): StorageStatistics;
}

/**
 * Opens a storage in etcd and loads it. Eventual reads and watches are served from memory, which a watch on
 * etcd keeps up to date; a commit resolves when etcd and this memory have it.
 *
 * @throws StorageUnavailable if etcd can't be reached; UnrecognizedData if the prefix has other data; OverlappingPrefix if
 *   the storage is new, and another one has a prefix below or above; RangeError if a limit exceeds what a request to etcd can
 *   hold; StateTooLarge if the state needs more memory than the limit or the heap allows.
 */
export async function createEtcdBackend(options: EtcdBackendOptions): Promise<EtcdBackend> {
	try {
		return await open(options, { recent: true });
	} catch (error) {
		const mayHelp = [StateTooLarge, UnrecognizedData, NotReplayed].some(
			(kind) => error instanceof kind,
		);
		if (!mayHelp) {
			throw error;
		}
		const { logger = silentLogger } = options;
		const why = error instanceof Error ? error.message : String(error);
		logger.info({ why }, "loading the newest state of the storage instead of a recent one");
		// The state of now may be smaller than that of some time ago, and data of others may be gone.
		return open(options, { recent: false });
	}
}

async function open(
	options: EtcdBackendOptions,
	{ recent }: { readonly recent: boolean },
): Promise<EtcdBackend> {
	const { runtime = systemRuntime, logger = silentLogger } = options;
	const { deliveries = new WatchDeliveries(runtime) } = options;
	const requestLimits = { ...etcdRequestLimits, ...options.requestLimits };
	const limits = checkedLimits(options.limits, requestLimits);
	const keys = new Keys(options.prefix ?? defaultPrefix);
	const client = new EtcdClient(options);
	const timeoutMs = options.requestTimeoutMs ?? defaultRequestTimeoutMs;
	const closing = new AbortController();
	const { signal } = options;
	signal?.throwIfAborted();
	const onAbort = () => closing.abort(signal?.reason);
	signal?.addEventListener("abort", onAbort, { once: true });
	const base = { client, keys, runtime, clock: runtime.clock, logger };
	const capacity = new LoadCapacity(limits);
	const replayed = new ReplayedState(capacity, runtime.clock, timeoutMs);
	try {
		const identity = await openIdentity(base, closing.signal);
		const offset = new VersionOffset(identity.versionOffset);
		const history = new StoreHistory(identity, { ...base, random: runtime.random });
		const context = {
			...base,
			history,
			offset,
			decoder: new ResourceDecoder(keys, offset),
			scheduler: runtime.scheduler,
			limits,
			requestLimits,
			timeoutMs,
			makeStore: () => new StateStore(runtime, limits, deliveries),
			ownTransaction: (head: Uint8Array) => groups.ownTransaction(head),
			replayed,
		};
		const loaded = await load(context, closing.signal, { capacity, recent });
		const state = new FollowedState(context, loaded);
		const catchUp = new CatchUp({ ...context, state });
		const groups = new GroupCommit({
			...{ ...context, state, catchUp },
			...(options.onBatch && { onBatch: options.onBatch }),
		});
		const events = new EtcdEventStorage({ ...base, historyLost: history.lost });
		const servers = new EtcdServerDirectory({
			...{ ...base, random: runtime.random },
			historyLost: history.lost,
		});
		const parts = { ...context, state, catchUp, groups, events, servers, closing, options };
		const backend = new OpenEtcdBackend(parts);
		try {
			const newest = offset.versionOf(loaded.newest);
			await replayed.reaches(newest, state.gate, [closing.signal, history.lost]);
		} catch (failure) {
			await backend.close();
			throw failure;
		}
		return backend;
	} catch (error) {
		client.close();
		signal?.throwIfAborted();
		throw unavailableAfter(error);
	} finally {
		signal?.removeEventListener("abort", onAbort);
	}
}

/** The error of opening, after a failure of etcd or another one. */
function unavailableAfter(error: unknown): unknown {
	return error instanceof EtcdError || error instanceof WentBack || error instanceof OtherCluster
		? new StorageUnavailable(`can't load the storage: ${error.message}`, { cause: error })
		: error;
}

function checkedLimits(
	overrides: Partial<StorageLimits> = {},
	requestLimits: EtcdRequestLimits,
): StorageLimits {
	const mostBytes = Math.floor(requestLimits.maxRequestBytes * 0.8);
	const limits = {
		...defaultStorageLimits,
		commitBytes: Math.min(defaultStorageLimits.commitBytes, mostBytes),
		resourceBytes: Math.min(defaultStorageLimits.resourceBytes, mostBytes),
		...overrides,
	};
	if (limits.mutations > mostMutations(requestLimits)) {
		throw new RangeError(
			`commits of ${limits.mutations} mutations: an etcd with --max-txn-ops=${requestLimits.maxTxnOps} accepts at most ${mostMutations(requestLimits)}`,
		);
	}
	return limits;
}

interface Parts {
	readonly client: EtcdClient;
	readonly keys: Keys;
	readonly runtime: Runtime;
	readonly logger: Logger;
	readonly history: StoreHistory;
	readonly offset: VersionOffset;
	readonly state: FollowedState;
	readonly catchUp: CatchUp;
	readonly groups: GroupCommit;
	readonly events: EtcdEventStorage;
	readonly servers: EtcdServerDirectory;
	readonly limits: StorageLimits;
	readonly timeoutMs: number;
	readonly closing: AbortController;
	readonly options: EtcdBackendOptions;
}

class OpenEtcdBackend implements EtcdBackend {
	readonly #parts: Parts;
	/** The background work until the storage is closed. */
	readonly #work: Promise<unknown>;
	/** Settles when the recovery from lost history is complete. */
	#recovery: Promise<void> = Promise.resolve();
	#closing: Promise<void> | undefined;

	constructor(parts: Parts) {
		this.#parts = parts;
		const { state, history, runtime, closing } = parts;
		const until = AbortSignal.any([closing.signal, history.lost]);
		this.#work = Promise.all([state.follow(until), keepProving(history, runtime, until)]);
		history.lost.addEventListener("abort", () => this.#fail(history.lost.reason), { once: true });
	}

	get identity(): EtcdStorageIdentity {
		return this.#parts.history.identity;
	}

	get historyLost(): AbortSignal {
		return this.#parts.history.lost;
	}

	get events(): EventStorage {
		return this.#parts.events;
	}

	get servers(): ServerDirectory {
		return this.#parts.servers;
	}

	read: StorageBackend["read"] = async (id, options) => (await this.#store(options)).read(id);

	lookup: StorageBackend["lookup"] = async (name, options) =>
		(await this.#store(options)).lookup(name);

	lookupNow(name: ResourceName): Resource | undefined {
		this.#assertOpen();
		return this.#parts.state.store.lookup(name);
	}

	list: StorageBackend["list"] = async (query, options) => {
		const snapshot = (await this.#store(options)).snapshot(query);
		return { resources: [...snapshot.resources()], version: snapshot.version };
	};

	snapshot: StorageBackend["snapshot"] = async (query, options) =>
		(await this.#store(options)).snapshot(query, options?.heldBy);

	listByOwner: StorageBackend["listByOwner"] = async (owner, options) =>
		(await this.#store(options)).listByOwner(owner, options);

	countByType: StorageBackend["countByType"] = async () => (await this.#store()).countByType();

	countByTypeIn: StorageBackend["countByTypeIn"] = async (unit, options) =>
		(await this.#store(options)).countByTypeIn(unit);

	history: HistorySource["history"] = async (name, options) =>
		(await this.#store(options)).history(name, options.signal);

	watchList: StorageBackend["watchList"] = (query, options) =>
		this.#parts.state.store.watch(query, options, (signal) => this.catchUp(signal));

	async commit(
		mutations: readonly Mutation[],
		{ fence, dryRun, writtenBy }: CommitOptions = {},
	): Promise<CommitResult> {
		this.#assertOpen();
		const { limits, groups, catchUp, state } = this.#parts;
		checkCommitLimits(mutations, limits);
		if (!dryRun) {
			return groups.commit(mutations, { fence, writtenBy });
		}
		await (fence === undefined ? catchUp.newest() : catchUp.newestWithin(fence));
		const effects = evaluateMutations(mutations, state.store);
		checkGrowth(state.store.bytes, effects, limits);
		return assignVersion(effects, state.store.version).commit;
	}

	statistics(): StorageStatistics {
		return this.#parts.state.store.statistics();
	}

	async catchUp(signal: AbortSignal, atLeast = ""): Promise<string> {
		this.#assertOpen();
		signal.throwIfAborted();
		const { catchUp, state } = this.#parts;
		if (atLeast === "" || !(state.store.revision >= Number(atLeast))) {
			await catchUp.newest(signal);
		}
		return state.store.version;
	}

	close(): Promise<void> {
		this.#closing ??= this.#close();
		return this.#closing;
	}

	async #close(): Promise<void> {
		const { groups, events, servers, state, runtime, timeoutMs, closing, client } = this.#parts;
		events.close();
		await servers.leave();
		await groups.settled();
		using within = deadline(runtime.clock, timeoutMs);
		await unlessAborted(this.#recovery, within.signal).catch(() => {});
		closing.abort(new Error("the storage was closed"));
		await this.#work;
		state.close();
		client.close();
	}

	/** etcd has lost history: stops all requests, and begins the next incarnation. */
	#fail(error: HistoryLost): void {
		const { groups, state, history, offset, client, closing, options } = this.#parts;
		const newestVersion = Math.max(
			state.store.revision,
			offset.versionOf(client.position.known.revision),
		);
		groups.fail(error);
		state.close();
		if (!(error.cause instanceof OtherCluster)) {
			const lost = { identity: history.identity, newestVersion };
			this.#recovery = replaceIncarnation(lost, this.#parts, options, closing.signal);
		}
		options.onFailed?.(error);
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
			throw new StorageUnavailable("the storage is closed");
		}
	}
}
