import type { PendingCommit } from "./pending-commit.ts";

/** What etcd takes in one request, as its flags say. */
export interface EtcdRequestLimits {
	/** `--max-txn-ops`. */
	readonly maxTxnOps: number;
	/** `--max-request-bytes`. */
	readonly maxRequestBytes: number;
}

/** What a request to etcd may be, unless its flags say otherwise. */
export const etcdRequestLimits: EtcdRequestLimits = Object.freeze({
	maxTxnOps: 128,
	maxRequestBytes: 1.5 * 1024 * 1024,
});

/** What a request takes beside its commits, roughly. */
const overheadBytes = 4096;

/** Whether etcd takes the commit in a request of its own. */
export function fitsAlone(
	{ bytes }: PendingCommit,
	{ maxRequestBytes }: EtcdRequestLimits,
): boolean {
	return bytes + overheadBytes <= maxRequestBytes;
}

/** What a transaction puts beside its commits: the head, and the token in its slot. */
const ownPuts = 2;

/**
 * How many mutations a commit may have: with a fence, they are nested in a transaction that also has puts
 * of its own.
 */
export function mostMutations({ maxTxnOps }: EtcdRequestLimits): number {
	return maxTxnOps - ownPuts - 2;
}

/** What is left of a request while commits are added to it. */
export class RequestRoom {
	readonly #limits: EtcdRequestLimits;
	#commits = 0;
	/** The operations of the largest commit. */
	#widest = 0;
	#bytes = overheadBytes;

	constructor(limits: EtcdRequestLimits) {
		this.#limits = limits;
	}

	/** Whether another commit fits in. */
	fits(pending: PendingCommit): boolean {
		const { maxTxnOps, maxRequestBytes } = this.#limits;
		// Etcd counts the operations of a transaction (its own, and one for each commit) and those of
		// the largest one nested in it together.
		const operations = ownPuts + (this.#commits + 1) + Math.max(this.#widest, widthOf(pending));
		return (
			operations <= maxTxnOps &&
			this.#bytes + pending.bytes <= maxRequestBytes &&
			!(pending.alone && this.#commits > 0)
		);
	}

	add(pending: PendingCommit): void {
		this.#commits += 1;
		this.#widest = Math.max(this.#widest, widthOf(pending));
		this.#bytes += pending.bytes;
	}
}

function widthOf({ keys, fence }: PendingCommit): number {
	return keys.length + (fence === undefined ? 0 : 1);
}
