import type { ID } from "@plinth/proto";
import type { Fence } from "@plinth/runtime";

/**
 * The right of a server to work on resources, from when it gets it until it ends: on all resources of a controller
 * during a run or, if the controller is sharded, on those of a shard while the server holds it. Each is an object of its
 * own, so that state of the work can be kept by it.
 */
export interface WorkHold {
	/** The fence of its lease, for writes that do not go through the client of the context; absent without a lease. */
	readonly fence: Fence | undefined;
}

/** The resources that a run works on: all or, if the controller is sharded, those of the shards that the server holds. */
export interface Share {
	/** The hold under which the run works on a resource now, or will soon; `undefined` if it does not. */
	holdOf(id: ID): WorkHold | undefined;
	/**
	 * Calls the listener when that may have changed, until the returned function is called. A listener that is added by
	 * another one is called from the next change on.
	 */
	onChange(listener: () => void): () => void;
}
