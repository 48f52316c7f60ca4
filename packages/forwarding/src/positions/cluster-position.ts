/** The header of a request that names the version which its response must not be older than. */
export const notBeforeHeader = "x-plinth-not-before";

/** The header of a response with a version that is no older than what it shows. */
export const positionHeader = "x-plinth-position";

/**
 * The newest version that any response of the servers of a cluster has shown to a client of this agent. Each call names it,
 * so that the agent is like one server for its clients: none sees an older state after a newer one, whichever server it
 * reaches.
 *
 * Versions are never issued twice, not even after a restore. They are lower only if the storage was replaced by another one:
 * then the servers refuse the position, and the agent takes theirs.
 */
export class ClusterPosition {
	#newest = 0;
	#replaced = 0;

	/** How often the storage was found to be another one. */
	get replaced(): number {
		return this.#replaced;
	}

	get newest(): number {
		return this.#newest;
	}

	/** Something of this version is passed on. */
	shown(version: number): void {
		// Not if it is NaN.
		if (version > this.#newest) {
			this.#newest = version;
		}
	}

	/** A storage has refused a position, because it has not reached it. @param reached - the version that it has reached. */
	refused(reached: number): void {
		if (reached < this.#newest) {
			this.#newest = reached;
			this.#replaced += 1;
		}
	}
}

/** The version in a header; `undefined` if there is none, or another text, or a number that can't be told from others. */
export function versionOf(header: unknown): number | undefined {
	const version =
		typeof header === "string" && /^(?:0|[1-9]\d{0,15})$/.test(header)
			? Number(header)
			: Number.NaN;
	return Number.isSafeInteger(version) ? version : undefined;
}
