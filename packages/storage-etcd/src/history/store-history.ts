import { randomUUID } from "node:crypto";
import { Code } from "@connectrpc/connect";
import type { Fence, Logger, Random } from "@plinth/runtime";
import { Fenced, StorageUnavailable } from "@plinth/storage";
import { type Condition, hasValue, heldBy, keyOf, operation } from "../client/conditions.ts";
import type { EtcdClient } from "../client/etcd-client.ts";
import { EtcdError, RevisionCompacted } from "../client/etcd-error.ts";
import type { KeyValue } from "../gen/mvccpb/kv_pb.ts";
import { type Keys, keyText } from "../keys.ts";
import { isSame, type StoredIdentity } from "./store-identity.ts";

/** etcd no longer has the history that this server has seen. The server stops reading from it and writing to it. */
export class HistoryLost extends StorageUnavailable {
	constructor(why: string, options?: ErrorOptions) {
		super(
			`etcd has lost history: ${why}. It was restored from a backup, wiped or rebuilt: this server must be restarted`,
			options,
		);
	}
}

/** The mark that a transaction leaves in etcd. */
export interface CommitMark {
	/** Unique among all transactions of all servers. It is sent once. */
	readonly token: string;
	/** The slot, which keeps the token until another transaction uses it. */
	readonly slot: number;
}

/** The mark of a transaction in the state. */
export interface SeenMark extends CommitMark {
	readonly revision: bigint;
}

/** The position of etcd, from one linearizable read. */
export interface HeadRead {
	/** The revision of the newest transaction of all servers; 0 if there was none. */
	readonly head: bigint;
	/** The newest revision of etcd. */
	readonly newest: bigint;
	/** Whether the store then had everything that the state had at the call. */
	readonly isProven: boolean;
}

/** The dependencies of the history. */
export interface HistoryContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
	readonly random: Random;
	readonly logger: Logger;
}

/** The number of slots. History stays provable for about as many transactions of other servers. */
const slots = 4096;
/** The number of recently used slots, which are not reused. */
const recentSlots = 256;

/**
 * Proves that etcd still has the history that this server has seen, and fails permanently if not.
 *
 * etcd loses history if it is restored from a backup, if its data is wiped, or if a quorum is rebuilt from a
 * member that was behind. Its revisions then continue from an earlier one, and soon reach the same numbers
 * with other contents. So revisions prove nothing, and neither does the id of the cluster, which is the same
 * after a restore to the same addresses.
 *
 * ```
 *   before   … ─ 90 ─ 91 ─ 92 ─ 93 (B/17, slot 5)      a server has applied everything up to 93
 *   after    … ─ 90 ─ 91' ─ 92' ─ 93' ─ 94'            slot 5 does not hold B/17
 * ```
 *
 * Every transaction puts a token under the head key and under the key of a slot. No two transactions have the
 * same token, and a transaction is sent once. Every transaction compares:
 *
 * 1. the identity of the store (store-identity.ts);
 * 2. that the slot of the newest transaction in the state still has the token of that transaction.
 *
 * *Why that is a proof.* A store with a token has executed its transaction. A transaction is executed at one
 * point of one history, so the store has the same history up to there. The state was loaded and followed up to
 * that transaction. So the store has everything that the state has; a transaction decided against the state is
 * applied to a store with all of it, or not at all.
 *
 * Another transaction may have reused the slot. The condition then fails although nothing is lost. This proves
 * nothing in either direction: instead, the value of the head key at the revision of the mark is read from
 * etcd's own history. If that is compacted, nothing is proven, and the state must advance to a newer mark
 * first. Slots are chosen at random among those that were not used recently, so this is rare.
 *
 * *Following.* A member of etcd never goes back while its process runs, so a watch stream continues one history. Each
 * stream begins at the revision of the mark, and nothing is applied before it has delivered exactly that token.
 *
 * *Limits.* Older servers leave no marks: with such a server in the cluster, the proof only covers the history
 * up to the newest mark. A stream that begins after the mark was compacted is proven by a read just
 * before it.
 */
export class StoreHistory {
	readonly identity: StoredIdentity;
	readonly #context: HistoryContext;
	readonly #lost = new AbortController();
	readonly #instance = randomUUID();
	readonly #recent = new RecentSlots();
	#transactions = 0;
	#mark: SeenMark | undefined;

	constructor(identity: StoredIdentity, context: HistoryContext) {
		this.identity = identity;
		this.#context = context;
		context.client.position.onBroken((broken) => this.lose(broken.message, broken));
	}

	/** Aborts when history is lost; its reason is a HistoryLost. */
	get lost(): AbortSignal {
		return this.#lost.signal;
	}

	/** The mark of the newest transaction in the state; absent if none has left a mark. */
	get mark(): SeenMark | undefined {
		return this.#mark;
	}

	/** Records a transaction that the state has applied, with its value of the head key. */
	seen(revision: bigint, head: Uint8Array): void {
		this.#context.client.position.reached(revision);
		const mark = parseMark(head);
		if (mark !== undefined) {
			this.#recent.use(mark.slot);
			this.#mark = { ...mark, revision };
		}
	}

	/** A new mark, for a transaction to send. */
	newMark(): CommitMark {
		this.#transactions += 1;
		const slot = this.#recent.draw(this.#context.random);
		return { token: `${this.#instance}/${this.#transactions}/${slot}`, slot };
	}

	/**
	 * The conditions that prove that the store has everything that the state has now.
	 *
	 * @throws HistoryLost
	 */
	intact(): Condition[] {
		this.#lost.signal.throwIfAborted();
		const { keys } = this.#context;
		const conditions = [hasValue(keys.identity, this.identity.value)];
		if (this.#mark !== undefined) {
			const { slot, token } = this.#mark;
			conditions.push(hasValue(keys.commit(slot), Buffer.from(token)));
		}
		return conditions;
	}

	/**
	 * Reads the position of the store, and proves that it has everything that the state has.
	 *
	 * @param fence A fence that must belong to the holder of its lease.
	 * @throws HistoryLost; Fenced; EtcdError; the signal's reason.
	 */
	async head(signal?: AbortSignal, fence?: Fence): Promise<HeadRead> {
		const { client, keys } = this.#context;
		const mark = this.#mark;
		const conditions = this.intact();
		const read = (key: Uint8Array) => operation("requestRange", { key });
		const headRead = operation("requestRange", { key: keys.head, keysOnly: true });
		const response = await client.readTransaction(
			{
				compare: fence === undefined ? conditions : [...conditions, heldBy(fence, keys)],
				success: [headRead],
				failure: [
					headRead,
					read(keys.identity),
					read(keys.commit(mark?.slot ?? 0)),
					read(fence === undefined ? keys.head : keys.lease(fence.lease)),
				],
			},
			signal,
		);
		const [head, identity, slot, lease] = response.responses.map(keyOf);
		const position = { head: head?.modRevision ?? 0n, newest: response.header?.revision ?? 0n };
		if (response.succeeded) {
			return { ...position, isProven: true };
		}
		this.checkIdentity(identity?.value);
		const isProven = mark === undefined || (await this.#has(mark, slot, signal));
		if (fence !== undefined && String(lease?.createRevision) !== fence.token) {
			throw new Fenced(fence.lease);
		}
		return { ...position, isProven };
	}

	/**
	 * Checks the identity of the store.
	 *
	 * @throws HistoryLost
	 */
	checkIdentity(value: Uint8Array | undefined): void {
		if (value === undefined) {
			throw this.lose("the identity of the store is missing");
		}
		if (!isSame({ value }, this.identity)) {
			throw this.lose(
				"the store has a different incarnation from the one that this server has loaded",
			);
		}
	}

	/**
	 * Checks the first event of a watch that began at a mark.
	 *
	 * @param head The value of the head key at that revision.
	 * @throws HistoryLost
	 */
	checkBegin(mark: SeenMark, revision: bigint, head: Uint8Array | undefined): void {
		if (revision !== mark.revision || head === undefined || keyText(head) !== mark.token) {
			throw this.lose(`revision ${mark.revision} now belongs to a different transaction`);
		}
	}

	/** Fails permanently. Returns the error with which everything fails from now on. */
	lose(why: string, cause?: unknown): HistoryLost {
		const { signal } = this.#lost;
		if (!signal.aborted) {
			const error = new HistoryLost(why, { cause });
			this.#context.logger.error(
				{
					why,
					incarnation: this.identity.incarnation,
					revision: String(this.#mark?.revision ?? 0n),
				},
				"etcd has lost history that this server has seen",
			);
			this.#lost.abort(error);
		}
		return signal.reason;
	}

	/** Whether the store has the transaction of a mark; `kept` is the current value of its slot. */
	async #has(
		mark: SeenMark,
		kept: KeyValue | undefined,
		signal: AbortSignal | undefined,
	): Promise<boolean> {
		if (kept === undefined || kept.modRevision < mark.revision) {
			throw this.lose(`the transaction of revision ${mark.revision} is missing`);
		}
		if (kept.modRevision === mark.revision) {
			this.checkBegin(mark, kept.modRevision, kept.value);
			return true;
		}
		const { client, keys } = this.#context;
		try {
			const { kvs } = await client.range({ key: keys.head, revision: mark.revision }, signal);
			this.checkBegin(mark, kvs[0]?.modRevision ?? 0n, kvs[0]?.value);
			return true;
		} catch (error) {
			if (error instanceof RevisionCompacted) {
				return false;
			}
			if (error instanceof EtcdError && error.code === Code.OutOfRange) {
				throw this.lose(`it has not reached revision ${mark.revision}`, error);
			}
			throw error;
		}
	}
}

/** The recently used slots. */
class RecentSlots {
	readonly #ring = new Int16Array(recentSlots).fill(-1);
	readonly #uses = new Uint16Array(slots);
	#at = 0;

	use(slot: number): void {
		const replaced = this.#ring[this.#at] ?? -1;
		if (replaced >= 0) {
			this.#uses[replaced] = (this.#uses[replaced] ?? 1) - 1;
		}
		this.#ring[this.#at] = slot;
		this.#uses[slot] = (this.#uses[slot] ?? 0) + 1;
		this.#at = (this.#at + 1) % recentSlots;
	}

	/** A slot that was not used recently. */
	draw(random: Random): number {
		for (let slot = Math.floor(random.next() * slots); ; slot = (slot + 1) % slots) {
			if (this.#uses[slot] === 0) {
				return slot;
			}
		}
	}
}

/** The mark in a value of the head key; `undefined` if an older server without marks has written it. */
function parseMark(head: Uint8Array): CommitMark | undefined {
	const token = keyText(head);
	const match = /^[^/]+\/\d+\/(\d{1,4})$/.exec(token);
	const slot = Number(match?.[1] ?? slots);
	return slot < slots ? { token, slot } : undefined;
}
