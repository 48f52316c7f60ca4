/**
 * How versions come from etcd's revisions: `version = revision + offset`.
 *
 * The offset is 0 until etcd loses history. Then revisions are given out again, and versions must not be:
 * the new incarnation of the store has an offset that is above all versions before (see store-identity.ts).
 */
export class VersionOffset {
	readonly #offset: number;

	constructor(offset: number) {
		this.#offset = offset;
	}

	/** The version, as a number, of what etcd has at a revision. */
	versionOf(revision: bigint): number {
		return Number(revision) + this.#offset;
	}

	/** The revision of a version; 0 where it is empty, for what does not exist. */
	revisionOf(version: string): bigint {
		return version === "" ? 0n : BigInt(Number(version) - this.#offset);
	}
}
