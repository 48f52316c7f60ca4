/*
 * What clients of a cluster did and were told. All of it is about registers: resources that are
 * written with texts of which none is used twice.
 */

/** What a client asks of a register. Versions are those that it was told before. */
export type Call =
	| { readonly kind: "read" }
	/** Whatever is there. */
	| { readonly kind: "put"; readonly text: string }
	| { readonly kind: "compare-and-swap"; readonly text: string; readonly version: string }
	| { readonly kind: "delete"; readonly version: string };

/** What a client was told. */
export type Outcome =
	/** Of a read: what is there. Of a write: what is there from now on. */
	| { readonly kind: "value"; readonly version: string; readonly text: string }
	/** Of a read or a deletion: there is nothing. */
	| { readonly kind: "absent" }
	| { readonly kind: "deleted"; readonly version: string }
	/** The version is not that of what is there. */
	| { readonly kind: "conflict" }
	/** Nothing was done, and that says nothing about what is there. */
	| { readonly kind: "not-done" }
	/** It may have been done, or may still be done. */
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
	/** Where it resumed; empty if it began with a snapshot. */
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
