/** The limits of the protocol. Times are in milliseconds on the monotonic clock. */
export interface ConstraintLimits {
	/** The timeout of one call to another deployment. */
	readonly callTimeoutMs: number;
	/** The maximum number of attempts of a write whose targets change concurrently. */
	readonly maxAttempts: number;
	/** The maximum delay between two attempts of a write. The first delay is a fiftieth of it. */
	readonly maxRetryDelayMs: number;
	/** The time after which a tentative source is queried, since it was first seen. */
	readonly tentativeMs: number;
	/** The time after which the server of a deletion that is still CHECKING is considered dead. */
	readonly checkingMs: number;
	/** How soon a deployment is queried again that could not be, or a deletion is tried again that has to wait. */
	readonly requeryMs: number;
	/**
	 * The longest interval between two attempts of a deletion that waits, before jitter. Until then each interval is twice
	 * the one before; what the deletion waits for is reported when it happens, and such a report may be lost.
	 */
	readonly maxRequeryMs: number;
	/** How soon a missing target is looked up again. */
	readonly resolveRetryMs: number;
	/** The longest interval between two lookups of a missing target. Until then each is twice the one before. */
	readonly maxResolveRetryMs: number;
	/** The period over which an owner must be found invalid three times before the owned resource drops it. */
	readonly ownerGraceMs: number;
	/** The number of concurrent passes that may wait for one deployment. */
	readonly passesPerDeployment: number;
	/** The number of deletions of one deployment that a server remembers while they wait. */
	readonly deletionsPerDeployment: number;
	/** The number of resources that one pass of a cascade deletes or clears. */
	readonly pageSize: number;
	/** The maximum number of items per call to another deployment. */
	readonly batchSize: number;
}

/** The default limits. */
export const defaultConstraintLimits: ConstraintLimits = {
	callTimeoutMs: 5_000,
	maxAttempts: 20,
	maxRetryDelayMs: 250,
	tentativeMs: 30_000,
	checkingMs: 30_000,
	requeryMs: 2_000,
	maxRequeryMs: 60_000,
	resolveRetryMs: 30_000,
	maxResolveRetryMs: 300_000,
	ownerGraceMs: 30_000,
	passesPerDeployment: 100,
	deletionsPerDeployment: 10_000,
	pageSize: 100,
	batchSize: 200,
};
