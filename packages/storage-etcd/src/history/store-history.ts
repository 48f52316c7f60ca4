import { randomUUID } from "node:crypto";
import { Code } from "@connectrpc/connect";
import type { Fence, Logger, Random } from "@plinth/runtime";
import { Fenced, Inconsistent } from "@plinth/storage";
import { type Condition, hasValue, heldBy, keyOf, operation } from "../client/conditions.ts";
import type { EtcdClient } from "../client/etcd-client.ts";
import { EtcdError, RevisionCompacted } from "../client/etcd-error.ts";
import type { KeyValue } from "../gen/mvccpb/kv_pb.ts";
import { type Keys, keyText } from "../keys.ts";
import { isSame, type StoredIdentity } from "./store-identity.ts";

/** etcd no longer has what this server has seen there. Nothing is read from it or written to it any more. */
export class HistoryLost extends Inconsistent {
	constructor(why: string, options?: ErrorOptions) {
		super(
			`etcd has lost history: ${why}. It was restored from a backup, wiped or rebuilt: this server must start again`,
			options,
		);
	}
}

/** What a transaction leaves in etcd. */
export interface CommitMark {
	/** Unlike that of any other transaction, of any server. It is sent once. */
	readonly token: string;
	/** Where the token stays until another transaction uses the slot. */
	readonly slot: number;
}

/** The mark of a transaction that the state has. */
export interface SeenMark extends CommitMark {
	readonly revision: bigint;
}

/** What etcd has, read in one linearizable step. */
export interface HeadRead {
	/** The revision of the newest transaction of all servers; 0 if there was none. */
	readonly head: bigint;
	/** The newest revision of etcd. */
	readonly newest: bigint;
	/** Whether the store had everything then that the state had when it was asked. */
	readonly isProven: boolean;
}

/** What the history is checked with. */
export interface HistoryContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
	readonly random: Random;
	readonly log: Logger;
}

/** Slots for marks. What a server has seen stays provable for about as many transactions of other servers. */
const slots = 4096;
/** The newest slots, which no transaction uses again. */
const recentSlots = 256;

/**
 * Proves that etcd still has the history that this server has seen, and fails once and for all where it has not.
 *
 * etcd loses history where it is restored from a backup, where its data is wiped, and where a quorum is rebuilt
 * from a member that was behind. Its revisions then go on from an earlier one, and soon reach the numbers that
 * they had before, with other contents. Revisions therefore prove nothing, and neither does the id of the
 * cluster, which is the same after a restore to the same addresses.
 *
 * ```
 *   before   … ─ 90 ─ 91 ─ 92 ─ 93 (B/17, slot 5)      a server has applied all up to 93
 *   after    … ─ 90 ─ 91' ─ 92' ─ 93' ─ 94'            slot 5 does not hold B/17
 * ```
 *
 * Every transaction puts a token under the head key and under the key of a slot. No two transactions have the
 * same token, and a transaction is sent once. Every transaction compares:
 *
 * 1. the identity of the store (store-identity.ts);
 * 2. that the slot of the newest transaction that the state has, still holds the token of that one.
 *
 * *Why that is a proof.* A store that holds a token has executed its transaction. A transaction is executed at one
 * place in one history, so that the store has the same history up to there. The state has been loaded and followed
 * up to that transaction. So the store has everything that the state has; a transaction decided against the state
 * lands on a store that lacks nothing of it, or does not land.
 *
 * Another transaction may have used the slot since. The condition then fails although nothing is lost. This is
 * not taken for a proof in either direction: the value that the head key had at the revision of the mark is read
 * instead, from etcd's own history. Where that is compacted, nothing is proven, and the state has to move on to a
 * newer mark first. Slots are drawn at random among those that were not used lately, so this is rare.
 *
 * *Following.* A member of etcd never goes back while its process runs, so a watch stream continues one history. Each
 * stream begins at the revision of the mark, and nothing of it is applied before it has delivered that very token.
 *
 * *Limits.* Transactions of servers that do not know about marks leave none: with such a server beside, what is
 * proven reaches up to the newest mark. A stream that begins after the mark was compacted is proven by a read just
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

	/** The mark of the newest transaction that the state has. Absent: it has none that left a mark. */
	get mark(): SeenMark | undefined {
		return this.#mark;
	}

	/** The state has a transaction, which put this value under the head key. */
	seen(revision: bigint, head: Uint8Array): void {
		this.#context.client.position.reached(revision);
		const mark = parseMark(head);
		if (mark !== undefined) {
			this.#recent.use(mark.slot);
			this.#mark = { ...mark, revision };
		}
	}

	/** The mark for a transaction to be sent. */
	newMark(): CommitMark {
		this.#transactions += 1;
		const slot = this.#recent.draw(this.#context.random);
		return { token: `${this.#instance}/${this.#transactions}/${slot}`, slot };
	}

	/**
	 * The conditions under which the store has everything that the state has now.
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
	 * Reads how far the store is, and proves that it has everything that the state has.
	 *
	 * @param fence The fence that must be that of the lease's holder.
	 * @throws HistoryLost; Fenced; EtcdError; the signal's reason.
	 */
	async head(signal?: AbortSignal, fence?: Fence): Promise<HeadRead> {
		const { client, keys } = this.#context;
		const mark = this.#mark;
		const conditions = this.intact();
		const read = (key: Uint8Array) => operation("requestRange", { key });
		const headRead = operation("requestRange", { key: keys.head, keysOnly: true });
		const answer = await client.readTransaction(
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
		const [head, identity, slot, lease] = answer.responses.map(keyOf);
		const told = { head: head?.modRevision ?? 0n, newest: answer.header?.revision ?? 0n };
		if (answer.succeeded) {
			return { ...told, isProven: true };
		}
		this.checkIdentity(identity?.value);
		const isProven = mark === undefined || (await this.#has(mark, slot, signal));
		if (fence !== undefined && String(lease?.createRevision) !== fence.token) {
			throw new Fenced(fence.lease);
		}
		return { ...told, isProven };
	}

	/**
	 * Checks what the store holds as its identity.
	 *
	 * @throws HistoryLost
	 */
	checkIdentity(value: Uint8Array | undefined): void {
		if (value === undefined) {
			throw this.lose("the identity of the store is gone");
		}
		if (!isSame({ value }, this.identity)) {
			throw this.lose(
				"the store is of another incarnation than the one that this server has loaded",
			);
		}
	}

	/**
	 * Checks the first event of a watch that began at a mark.
	 *
	 * @param head What the head key held at that revision.
	 * @throws HistoryLost
	 */
	checkBegin(mark: SeenMark, revision: bigint, head: Uint8Array | undefined): void {
		if (revision !== mark.revision || head === undefined || keyText(head) !== mark.token) {
			throw this.lose(`revision ${mark.revision} is of another transaction than before`);
		}
	}

	/** Fails for good. Answers the error that everything fails with from now on. */
	lose(why: string, cause?: unknown): HistoryLost {
		const { signal } = this.#lost;
		if (!signal.aborted) {
			const error = new HistoryLost(why, { cause });
			this.#context.log.error(
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

	/** Whether the store has the transaction of a mark. Its slot holds `kept` now. */
	async #has(
		mark: SeenMark,
		kept: KeyValue | undefined,
		signal: AbortSignal | undefined,
	): Promise<boolean> {
		if (kept === undefined || kept.modRevision < mark.revision) {
			throw this.lose(`the transaction of revision ${mark.revision} is gone`);
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

/** Which slots were used last. */
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

	/** A slot that was not used lately. */
	draw(random: Random): number {
		for (let slot = Math.floor(random.next() * slots); ; slot = (slot + 1) % slots) {
			if (this.#uses[slot] === 0) {
				return slot;
			}
		}
	}
}

/** The mark in a head's value. Absent: a server put it that does not know about marks. */
function parseMark(head: Uint8Array): CommitMark | undefined {
	const token = keyText(head);
	const match = /^[^/]+\/\d+\/(\d{1,4})$/.exec(token);
	const slot = Number(match?.[1] ?? slots);
	return slot < slots ? { token, slot } : undefined;
}
