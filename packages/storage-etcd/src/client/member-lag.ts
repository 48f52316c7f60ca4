/** How many progress requests earlier a revision was known that a member must have: one is sent each second. */
const tolerated = 3;
/** The maximum of progress requests whose responses are awaited: a member sends none while it sends old events. */
const mostPending = 60;

/**
 * Finds that the member of a watch lags behind its cluster, as one does whose disk or process is stuck while it still hears
 * its leader: it responds, at an old revision.
 *
 * ```
 *   known          7      8      9      9      9
 *   requests       1      2      3      4      5
 *   responses        7      7      7      7  ✗          the response to 4 must be at 7, that to 5 at 8
 * ```
 *
 * The revision of a response is compared with one that was known some requests before its own request. So it does not
 * matter that it is received late, up to a minute, or for how long this process or its machine has stood still.
 * Responses come in the order of requests, and some requests get none: a response may belong to a later request than
 * assumed here, and is then compared with an older revision.
 */
export class MemberLag {
	/** The revisions known when the last requests were sent. */
	readonly #known: bigint[] = [];
	/** Per pending request, the revision that its response must have. */
	readonly #required: bigint[] = [];

	/** A progress request is sent, while the cluster is known to have this revision. */
	requested(known: bigint): void {
		this.#known.push(known);
		const earlier = this.#known.length > tolerated ? this.#known.shift() : undefined;
		this.#required.push(earlier ?? 0n);
		if (this.#required.length > mostPending) {
			this.#required.shift();
		}
	}

	/** A response to a progress request; returns the revision that it lacks, if it does. */
	responded(revision: bigint): bigint | undefined {
		const required = this.#required.shift() ?? 0n;
		return revision < required ? required : undefined;
	}
}
