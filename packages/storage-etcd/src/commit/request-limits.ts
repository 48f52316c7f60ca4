import type { PendingCommit } from "./pending-commit.ts";

/** The limits of one request, as set by the flags of etcd. */
export interface EtcdRequestLimits {
	/** `--max-txn-ops`. */
	readonly maxTxnOps: number;
	/** `--max-request-bytes`. */
	readonly maxRequestBytes: number;
}

/** The default limits of etcd. */
export const etcdRequestLimits: EtcdRequestLimits = Object.freeze({
	maxTxnOps: 128,
	maxRequestBytes: 1.5 * 1024 * 1024,
});

/** The approximate size of a request without its commits. */
const overheadBytes = 4096;

/** Whether the commit fits into a request alone. */
export function fitsAlone(
	{ bytes }: PendingCommit,
	{ maxRequestBytes }: EtcdRequestLimits,
): boolean {
	return bytes + overheadBytes <= maxRequestBytes;
}

/** The puts of a transaction besides its commits: the head, and the token in its slot. */
const ownPuts = 2;

/**
 * The maximum of mutations per commit: with a fence, they are nested in a transaction that has its own puts.
 */
export function mostMutations({ maxTxnOps }: EtcdRequestLimits): number {
	return maxTxnOps - ownPuts - 2;
}

/** The remaining space in a request while commits are added. */
export class RequestRoom {
	readonly #limits: EtcdRequestLimits;
	#commits = 0;
	/** The operations of the largest commit. */
	#widest = 0;
	#bytes = overheadBytes;

	constructor(limits: EtcdRequestLimits) {
		this.#limits = limits;
	}

	/** Whether another commit fits. */
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
