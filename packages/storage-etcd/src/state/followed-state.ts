import { Backoff, type Runtime } from "@plinth/runtime";
import { type Change, type StateStore, WatchClosed } from "@plinth/storage";
import { EtcdError, RevisionCompacted } from "../client/etcd-error.ts";
import type { Transaction } from "../commit/transaction.ts";
import type { WatchResponse } from "../gen/etcdserverpb/rpc_pb.ts";
import { type Event, Event_EventType } from "../gen/mvccpb/kv_pb.ts";
import { HistoryLost, type SeenMark, type StoreHistory } from "../history/store-history.ts";
import { keyText } from "../keys.ts";
import { type LoadContext, type Loaded, load } from "./load.ts";
import { RevisionGate } from "./revision-gate.ts";

/** What following needs. */
export interface FollowContext extends LoadContext {
	readonly runtime: Runtime;
	readonly history: StoreHistory;
	/** The transaction of this server that has put this value under the head key, while it is under way. */
	ownTransaction(head: Uint8Array): Transaction | undefined;
}

/** The delays before a watch is tried again. */
const restart = { baseMs: 50, maxMs: 1000 };

/**
 * The state as etcd has it, some milliseconds later: loaded once, then kept up by a watch.
 *
 * ```
 *   load at revision r ──▶ watch from r + 1 ──▶ apply revision by revision ──▶ gate, own commits
 *        ▲                       │ broken: again, from where the state is
 *        └── a new state ◀───────┘ compacted
 * ```
 *
 * A watch that breaks goes on from the next revision, and nobody notices. Where etcd has forgotten
 * that revision, a new state is loaded, watches of the old one end as WatchClosed, and everybody
 * reads from the new one; unless the head key says that nothing has happened meanwhile. The new
 * state is not compared with the old one to make events of the difference: what happened in between
 * is gone, and watches are told everything or that they were not.
 *
 * Each watch begins at the newest transaction that the state has, and nothing is applied unless it delivers that
 * very transaction first: a restored etcd has another one there, or nothing until it gets that far, which would look
 * like a quiet etcd (see store-history.ts). Where that transaction was compacted, no watch can begin at it: the
 * history is proven by a read before each watch instead.
 */
export class FollowedState {
	readonly gate = new RevisionGate();
	readonly #context: FollowContext;
	#store: StateStore;
	/** The first revision that the state may lack. */
	#next: bigint;
	/** What the watch that runs has to deliver first. */
	#expected: SeenMark | undefined;
	/** The revision of a mark that no watch can begin at any more. */
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

	/** What reads are answered from. Another one after a gap. */
	get store(): StateStore {
		return this.#store;
	}

	/** Follows until the signal aborts. */
	async follow(signal: AbortSignal): Promise<void> {
		const { runtime, log } = this.#context;
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
					log.warn({ why: error.message, revision }, "lost the watch on etcd");
				} else {
					log.error({ err: error, revision }, "could not follow etcd");
				}
			}
			await backoff.wait(signal).catch(() => {});
		}
	}

	/** Ends all watches of the state. */
	close(): void {
		this.#store.close(new WatchClosed("the storage was closed"));
	}

	async #watch(signal: AbortSignal, wentWell: () => void): Promise<void> {
		const { client, keys, history } = this.#context;
		const { mark } = history;
		const isCompacted = mark !== undefined && mark.revision === this.#compactedMark;
		this.#expected = isCompacted ? undefined : mark;
		if (isCompacted && !(await history.head(signal)).isProven) {
			await this.#reload(signal);
			return;
		}
		try {
			// From a revision that the state has, which is skipped: older etcds do not tell the deletions
			// of the very revision that they were compacted at (etcd's issue 19179).
			const startRevision = this.#expected?.revision ?? this.#next - 1n;
			const request = { ...keys.watched, startRevision };
			for await (const response of client.watch(request, signal)) {
				wentWell();
				this.#apply(response);
			}
		} catch (error) {
			if (!(error instanceof RevisionCompacted)) {
				throw error;
			}
			await this.#reload(signal);
			wentWell();
		}
	}

	async #reload(signal: AbortSignal): Promise<void> {
		const { history, offset, log } = this.#context;
		const { mark } = history;
		const { head, newest, isProven } = await history.head(signal);
		if (isProven && offset.versionOf(head) === this.#store.revision) {
			this.#next = newest + 1n;
			this.#compactedMark = mark?.revision;
			log.info({ revision: this.#store.revision }, "etcd was compacted, and nothing was missed");
			return;
		}
		const old = this.#store;
		// Where nothing is proven, what has the same revision as before may have another content.
		const loaded = await load(this.#context, signal, isProven ? { known: old } : {});
		this.#store = loaded.store;
		this.#next = loaded.revision + 1n;
		if (loaded.head !== undefined) {
			history.seen(loaded.head.modRevision, loaded.head.value);
		}
		log.warn(
			{ from: old.revision, to: loaded.store.revision },
			"etcd was compacted beyond what was followed: loaded anew, and closed all watches",
		);
		old.close(new WatchClosed("the storage has lost its place in etcd's history; watch again"));
		this.gate.advance(loaded.store.revision);
	}

	/** Applies the revisions of a response, each whole. */
	#apply({ events }: WatchResponse): void {
		for (let begin = 0; begin < events.length; ) {
			const revision = events[begin]?.kv?.modRevision ?? 0n;
			let end = begin + 1;
			while (end < events.length && events[end]?.kv?.modRevision === revision) {
				end += 1;
			}
			const changed = events.slice(begin, end);
			const head = this.#head(changed);
			if (this.#expected !== undefined) {
				this.#context.history.checkBegin(this.#expected, revision, head);
				this.#expected = undefined;
			}
			if (revision >= this.#next) {
				this.#applyRevision(revision, changed, head);
				this.#next = revision + 1n;
			}
			begin = end;
		}
	}

	#applyRevision(revision: bigint, events: readonly Event[], head: Uint8Array | undefined): void {
		const { history, offset, ownTransaction, keys } = this.#context;
		const own = head && ownTransaction(head);
		const version = offset.versionOf(revision);
		const changes: Change[] = [];
		const landed = new Map<string, Change>();
		for (const event of events) {
			if (event.kv !== undefined && isKey(event.kv.key, keys.identity)) {
				history.checkIdentity(event.type === Event_EventType.PUT ? event.kv.value : undefined);
				continue;
			}
			const key = keyText(event.kv?.key ?? new Uint8Array());
			const change = this.#change(event, key, version, own);
			if (change !== undefined) {
				changes.push(change);
				landed.set(key, change);
			}
		}
		this.#store.apply(version, changes);
		if (head !== undefined) {
			history.seen(revision, head);
		}
		own?.landed(version, landed);
		this.gate.advance(version);
	}

	/** What the events of a revision say that was put under the head key. */
	#head(events: readonly Event[]): Uint8Array | undefined {
		const { keys } = this.#context;
		return events.find(({ kv }) => kv !== undefined && isKey(kv.key, keys.head))?.kv?.value;
	}

	#change(
		{ type, kv }: Event,
		key: string,
		revision: number,
		own: Transaction | undefined,
	): Change | undefined {
		const name = this.#context.keys.parse(key);
		if (name === undefined || kv === undefined) {
			return undefined;
		}
		if (type === Event_EventType.DELETE) {
			const stored = this.#store.lookup(name);
			return stored && { op: "delete", resource: stored };
		}
		const ownPut = own?.stamped(key, revision);
		if (ownPut !== undefined) {
			return { op: "put", resource: ownPut };
		}
		try {
			return { op: "put", resource: this.#context.decoder.decode(kv) };
		} catch (error) {
			// The key keeps the content that it had here, and commits to it fail by their guards.
			this.#context.log.error({ err: error, revision }, "skipped a foreign change in etcd");
			return undefined;
		}
	}
}

function isKey(key: Uint8Array, wanted: Uint8Array): boolean {
	return key.length === wanted.length && Buffer.compare(key, wanted) === 0;
}
