/*
 * The operations of the clients of a cluster and their responses, all on registers: resources that are written
 * with unique texts.
 */

/** An operation on a register. Versions are those that the client received before. */
export type Call =
	| { readonly kind: "read" }
	/** Whatever is stored. */
	| { readonly kind: "put"; readonly text: string }
	| { readonly kind: "compare-and-swap"; readonly text: string; readonly version: string }
	| { readonly kind: "delete"; readonly version: string };

/** The outcome of an operation. */
export type Outcome =
	/** Of a read: the stored value. Of a write: the new value. */
	| { readonly kind: "value"; readonly version: string; readonly text: string }
	/** Of a read or a deletion: the register does not exist. */
	| { readonly kind: "absent" }
	| { readonly kind: "deleted"; readonly version: string }
	/** The version is not the stored one. */
	| { readonly kind: "conflict" }
	/** The operation was not executed; the stored value is unknown. */
	| { readonly kind: "not-done" }
	/** It may have been executed, or may still be. */
	| { readonly kind: "unknown"; readonly why: string };

/** A call and what came of it. Times are of the monotonic clock of the clients, in milliseconds. */
export interface Operation {
	readonly register: string;
	/** The life of a server that it was sent to: from one start to the next end. */
	readonly life: number;
	/** Whether a read was strong; writes always are. */
	readonly strong: boolean;
	readonly call: Call;
	readonly outcome: Outcome;
	readonly startMs: number;
	readonly endMs: number;
}

/** An event of a watch, as it came. */
export type SeenEvent =
	| {
			readonly kind: "upsert" | "delete";
			readonly register: string;
			/** Of the resource in the event. */
			readonly stored: { readonly version: string; readonly text: string };
			/** Of the event; empty if its revision goes on. */
			readonly version: string;
			readonly atMs: number;
	  }
	| { readonly kind: "end-of-snapshot"; readonly version: string };

/** One stream of a watch of all registers. */
export interface WatchSession {
	readonly life: number;
	/** The version that it resumed after; empty if it began with a snapshot. */
	readonly afterVersion: string;
	readonly events: readonly SeenEvent[];
	/** Whether it was read until there was nothing left to come. */
	readonly complete: boolean;
}

/** Everything that clients saw. */
export interface History {
	readonly operations: readonly Operation[];
	readonly sessions: readonly WatchSession[];
}
