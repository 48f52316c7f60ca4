/** Time limits of controllers, in milliseconds. */
export interface ControllerLimits {
	/** When controllers are stopped: how long reconciles may continue before they are aborted. */
	readonly stopFinishMs: number;
	/** How long reconciles, mappers and initializers may take to end after they were aborted. */
	readonly stopAbortMs: number;
	/** How long reconciles of primed resources wait until the primed resources of watched types are mapped. */
	readonly mapPrimedMs: number;
	/** How long a request may wait for the cache to contain its own writes. */
	readonly ownWritesMs: number;
	/** A run that fails after it was in phase `running` for at least this time is restarted without a delay. */
	readonly healthyMs: number;
	/** The delay before the restart after the first failure; each further one doubles it. */
	readonly restartBaseMs: number;
	/** The maximum delay before a restart. */
	readonly restartMaxMs: number;
}

/** The default limits. */
export const defaultControllerLimits: ControllerLimits = {
	stopFinishMs: 5_000,
	stopAbortMs: 5_000,
	mapPrimedMs: 30_000,
	ownWritesMs: 30_000,
	healthyMs: 2_000,
	restartBaseMs: 500,
	restartMaxMs: 60_000,
};
