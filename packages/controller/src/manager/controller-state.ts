import type { Placement } from "../define/controller.ts";
import type { PooledKey } from "../queue/worker-pool.ts";
import type { OwnWritesMetrics } from "../run/own-writes.ts";
import type { Phase } from "../run/phase.ts";
import type { ReconcileCounts } from "../run/reconcile-tally.ts";
import type { RunState } from "../run/run.ts";

/** The last error that ended a run. */
export interface RunError {
	readonly message: string;
	readonly stack: string | undefined;
	/** When the run ended, in milliseconds since the epoch. */
	readonly atMs: number;
}

/** A report on one controller. */
export interface ControllerState {
	readonly name: string;
	/** The key of the managed type: `demo.v2.Artist`. */
	readonly manages: string;
	/** The keys of the watched types, and the names of custom watches. */
	readonly watches: readonly string[];
	readonly placement: Placement;
	readonly phase: Phase;
	/** How long it has been in this phase, in milliseconds. */
	readonly inPhaseMs: number;
	/** The number of failed runs. */
	readonly restarts: number;
	readonly lastError: RunError | undefined;
	/** Queues and cache, from priming to the end of a run. */
	readonly run: RunState | undefined;
	/** Counts of its reconciles since the start. */
	readonly reconciles: ReconcileCounts;
	/** How requests waited for the cache to contain their own writes, since the start. */
	readonly ownWrites: OwnWritesMetrics;
	/** Keys whose reconcile in an earlier run was aborted and is still running: it ignores its signal. */
	readonly orphaned: readonly string[];
}

/** What a controller does with one managed resource. */
export interface ReconcileState {
	readonly controller: string;
	/** `nameKey` of the resource. */
	readonly key: string;
	/** `idle` if nothing is queued, `elsewhere` if another server does, `stopped` if the controller is not running. */
	readonly work: PooledKey | "idle" | "elsewhere" | "stopped";
	/** Whether a reconcile of an earlier run, which ignores its signal, is still running. */
	readonly isOrphaned: boolean;
}

/** A report on a manager. */
export interface ManagerState {
	/** Whether it holds the lease that singletons need; `undefined` if they need none. */
	readonly holdsLease: boolean | undefined;
	readonly controllers: readonly ControllerState[];
}
