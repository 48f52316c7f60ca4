/**
 * Converts revisions of etcd to versions: `version = revision + offset`.
 *
 * If etcd loses history, it issues revisions again, but versions must not be issued again: the new incarnation of
 * the store has an offset above all earlier versions (see store-identity.ts).
 */
export class VersionOffset {
	readonly #offset: number;

	constructor(offset: number) {
		this.#offset = offset;
	}

	/** The version of a revision, as a number. */
	versionOf(revision: bigint): number {
		return Number(revision) + this.#offset;
	}

	/** The revision of a version; 0 for an empty version, of a missing resource. */
	revisionOf(version: string): bigint {
		return version === "" ? 0n : BigInt(Number(version) - this.#offset);
	}
}
