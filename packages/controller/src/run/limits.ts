/** How long things may take, in milliseconds. */
export interface ControllerLimits {
	/** When controllers are stopped: how long reconciles may go on before they are told to abort. */
	readonly stopFinishMs: number;
	/** How long reconciles, mappers and initializers have to end once they were told to abort. */
	readonly stopAbortMs: number;
	/** How long a request may wait for the cache to see what was written for it. */
	readonly ownWritesMs: number;
	/** After a run of this length, a failure is followed by a restart at once. */
	readonly healthyMs: number;
	/** The delay before the restart after the first failure; each further one doubles it. */
	readonly restartBaseMs: number;
	/** What no delay before a restart exceeds. */
	readonly restartMaxMs: number;
}

/** What holds where nothing else is said. */
export const defaultLimits: ControllerLimits = {
	stopFinishMs: 5_000,
	stopAbortMs: 5_000,
	ownWritesMs: 30_000,
	healthyMs: 2_000,
	restartBaseMs: 500,
	restartMaxMs: 60_000,
};
