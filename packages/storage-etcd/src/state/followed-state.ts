import { Backoff, type Runtime } from "@plinth/runtime";
import { type StateChange, type StateStore, WatchClosed } from "@plinth/storage";
import { EtcdError, RevisionCompacted } from "../client/etcd-error.ts";
import type { Transaction } from "../commit/transaction.ts";
import type { WatchResponse } from "../gen/etcdserverpb/rpc_pb.ts";
import { type Event, Event_EventType } from "../gen/mvccpb/kv_pb.ts";
import { HistoryLost, type SeenMark, type StoreHistory } from "../history/store-history.ts";
import { keyText } from "../keys.ts";
import { UnrecognizedData } from "./decode-resource.ts";
import { type LoadContext, type Loaded, load } from "./load.ts";
import type { ReplayedState } from "./replayed-state.ts";
import { RevisionGate } from "./revision-gate.ts";

/** The dependencies of a followed state. */
export interface FollowContext extends LoadContext {
	readonly runtime: Runtime;
	readonly history: StoreHistory;
	/** The pending transaction of this server that has put this value under the head key, if any. */
	ownTransaction(head: Uint8Array): Transaction | undefined;
	/** Is told what is applied and skipped. */
	readonly replayed: Pick<ReplayedState, "isReplaying" | "onApplied" | "onSkipped">;
}

/** The delays before a watch is restarted. */
const restart = { baseMs: 50, maxMs: 1000 };

/**
 * The state of etcd with a delay of some milliseconds: loaded once, at a revision that may be some time old, then updated by
 * a watch.
 *
 * ```
 *   load at revision r ──▶ watch from r + 1 ──▶ apply revision by revision ──▶ gate, own commits
 *        ▲                       │ broken: resumed at the revision of the state
 *        └── a new state ◀───────┘ compacted
 * ```
 *
 * A broken watch resumes at the next revision, and readers do not notice. If etcd has compacted that
 * revision, a new state is loaded, watches of the old one end as WatchClosed, and reads use the new one;
 * unless the head key proves that nothing has changed meanwhile. No events are derived from the difference
 * of the two states: the changes in between are lost, and a watch either receives all events or ends.
 *
 * Each watch begins at the newest transaction in the state, and nothing is applied unless it delivers exactly
 * that transaction first: a restored etcd has another one there, or none until it gets that far, which would
 * look like an idle etcd (see store-history.ts). If that transaction was compacted, no watch can begin at it:
 * then the history is proven by a read before each watch instead.
 */
export class FollowedState {
	readonly gate = new RevisionGate();
	readonly #context: FollowContext;
	#store: StateStore;
	/** The first revision that the state may lack. */
	#next: bigint;
	/** The mark that the current watch must deliver first. */
	#expected: SeenMark | undefined;
	/** The revision of a compacted mark, at which no watch can begin. */
	#compactedMark: bigint | undefined;

	constructor(context: FollowContext, { store, revision, head }: Loaded) {
		this.#context = context;
		this.#store = store;
		this.#next = revision + 1n;
		if (head !== undefined) {
			context.history.seen(head.modRevision, head.value);
		}
		this.gate.advance(store.revision);
	}

	/** The state that reads are served from; replaced after a gap. */
	get store(): StateStore {
		return this.#store;
	}

	/** Follows until the signal aborts. */
	async follow(signal: AbortSignal): Promise<void> {
		const { runtime, logger } = this.#context;
		const { clock, random } = runtime;
		const backoff = new Backoff({ ...restart, clock, random });
		while (!signal.aborted) {
			try {
				await this.#watch(signal, () => backoff.reset());
			} catch (error) {
				if (signal.aborted) {
					return;
				}
				const { revision } = this.#store;
				if (error instanceof HistoryLost) {
					return;
				}
				if (error instanceof EtcdError) {
					logger.warn({ why: error.message, revision }, "lost the watch on etcd");
				} else {
					logger.error({ err: error, revision }, "could not follow etcd");
					this.#context.replayed.onSkipped(error);
				}
			}
			await backoff.wait(signal).catch(() => {});
		}
	}

	/** Ends all watches of the state. */
	close(): void {
		this.#store.close(new WatchClosed("the storage was closed"));
	}

	async #watch(signal: AbortSignal, succeeded: () => void): Promise<void> {
		const { client, keys, history } = this.#context;
		const { mark } = history;
		const isCompacted = mark !== undefined && mark.revision === this.#compactedMark;
		this.#expected = isCompacted ? undefined : mark;
		if (isCompacted && !(await history.head(signal)).isProven) {
			await this.#reload(signal);
			return;
		}
		try {
			// From a revision that the state already has, which is skipped: older etcds do not send the deletions
			// of the revision at which they were compacted (etcd issue 19179).
			const startRevision = this.#expected?.revision ?? this.#next - 1n;
			const request = { ...keys.watched, startRevision };
			for await (const response of client.watch(request, signal)) {
				succeeded();
				this.#apply(response);
			}
		} catch (error) {
			if (!(error instanceof RevisionCompacted)) {
				throw error;
			}
			await this.#reload(signal);
			succeeded();
		}
	}

	async #reload(signal: AbortSignal): Promise<void> {
		const { history, offset, logger } = this.#context;
		const { mark } = history;
		const { head, newest, isProven } = await history.head(signal);
		if (isProven && offset.versionOf(head) === this.#store.revision) {
			this.#next = newest + 1n;
			this.#compactedMark = mark?.revision;
			logger.info({ revision: this.#store.revision }, "etcd was compacted, and nothing was missed");
			return;
		}
		const old = this.#store;
		// If nothing is proven, the same revision may have another content than before.
		const loaded = await load(this.#context, signal, isProven ? { known: old } : {});
		this.#store = loaded.store;
		this.#context.replayed.onApplied(loaded.store, 0);
		this.#next = loaded.revision + 1n;
		if (loaded.head !== undefined) {
			history.seen(loaded.head.modRevision, loaded.head.value);
		}
		logger.warn(
			{ from: old.revision, to: loaded.store.revision },
			"etcd compacted revisions that this server had not received: loaded the state again, and closed all watches",
		);
		old.close(new WatchClosed("the storage has lost its position in etcd's history; watch again"));
		this.gate.advance(loaded.store.revision);
	}

	/** Applies the revisions of a response, each completely. */
	#apply({ events }: WatchResponse): void {
		for (let begin = 0; begin < events.length; ) {
			const revision = events[begin]?.kv?.modRevision ?? 0n;
			let end = begin + 1;
			while (end < events.length && events[end]?.kv?.modRevision === revision) {
				end += 1;
			}
			const revisionEvents = events.slice(begin, end);
			const head = this.#head(revisionEvents);
			if (this.#expected !== undefined) {
				this.#context.history.checkBegin(this.#expected, revision, head);
				this.#expected = undefined;
			}
			if (revision >= this.#next) {
				this.#applyRevision(revision, revisionEvents, head);
				this.#next = revision + 1n;
			}
			begin = end;
		}
		const bytes = events.reduce((sum, { kv }) => sum + (kv?.value.byteLength ?? 0), 0);
		this.#context.replayed.onApplied(this.#store, bytes);
	}

	#applyRevision(revision: bigint, events: readonly Event[], head: Uint8Array | undefined): void {
		const { history, offset, ownTransaction, keys } = this.#context;
		const own = head && ownTransaction(head);
		const version = offset.versionOf(revision);
		const changes: StateChange[] = [];
		const changed = new Map<string, StateChange>();
		for (const event of events) {
			if (event.kv !== undefined && isKey(event.kv.key, keys.identity)) {
				history.checkIdentity(event.type === Event_EventType.PUT ? event.kv.value : undefined);
				continue;
			}
			const key = keyText(event.kv?.key ?? new Uint8Array());
			const change = this.#change(event, key, version, own);
			if (change !== undefined) {
				changes.push(change);
				changed.set(key, change);
			}
		}
		this.#store.apply(version, changes, { isReplayed: this.#context.replayed.isReplaying });
		if (head !== undefined) {
			history.seen(revision, head);
		}
		own?.delivered(version, changed);
		this.gate.advance(version);
	}

	/** The value that a revision has put under the head key. */
	#head(events: readonly Event[]): Uint8Array | undefined {
		const { keys } = this.#context;
		return events.find(({ kv }) => kv !== undefined && isKey(kv.key, keys.head))?.kv?.value;
	}

	#change(
		{ type, kv }: Event,
		key: string,
		revision: number,
		own: Transaction | undefined,
	): StateChange | undefined {
		const { keys, replayed } = this.#context;
		const name = keys.parse(key);
		if (name === undefined || kv === undefined) {
			// Keys beside the resources are those of another store whose prefix begins with this one, or of another program.
			if (type === Event_EventType.PUT && keys.isBelowResources(key)) {
				replayed.onSkipped(new UnrecognizedData(key, "it is not the key of a resource"));
			}
			return undefined;
		}
		const writtenBy = own?.writtenBy(key);
		if (type === Event_EventType.DELETE) {
			const stored = this.#store.lookup(name);
			return stored && { op: "delete", resource: stored, writtenBy };
		}
		const ownPut = own?.stamped(key, revision);
		if (ownPut !== undefined) {
			return { op: "put", resource: ownPut, writtenBy };
		}
		try {
			return { op: "put", resource: this.#context.decoder.decode(kv) };
		} catch (error) {
			// The state keeps the former value of the key, and commits to the key fail by their conditions.
			this.#context.logger.error(
				{ err: error, revision },
				"skipped a change in etcd that no Plinth server has made",
			);
			this.#context.replayed.onSkipped(error);
			return undefined;
		}
	}
}

function isKey(key: Uint8Array, wanted: Uint8Array): boolean {
	return key.length === wanted.length && Buffer.compare(key, wanted) === 0;
}
