import type { ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";

/** A change of one resource. A deleted resource is as it last was. */
export interface ResourceChange {
	readonly kind: "upsert" | "delete";
	readonly resource: Resource;
}

/**
 * What has become known about the resources of a watch, in this order:
 *
 * ```
 *   snapshot-begins ─▶ present … ─▶ snapshot-complete ─▶ changes, current …
 *         ▲                │                                     │
 *         └── lost before the snapshot was complete, or too old to resume ─┘
 * ```
 *
 * `lost` may come at any point.
 */
export type WatchUpdate =
	/** All resources follow as `present`. Those known before that are not among them have been deleted. */
	| { readonly kind: "snapshot-begins" }
	| { readonly kind: "present"; readonly resource: Resource }
	| { readonly kind: "snapshot-complete"; readonly version: string }
	/** All changes of one commit. Each is received once, also if the connection was lost in between. */
	| {
			readonly kind: "changes";
			readonly changes: readonly ResourceChange[];
			readonly version: string;
	  }
	/** Nothing else has changed up to that version. */
	| { readonly kind: "current"; readonly version: string }
	/**
	 * The server has ended the watch, but not the others. It is repeated after a while: what is known gets old until the next
	 * update. The loss of the whole stream is a state of the connection instead.
	 */
	| { readonly kind: "lost"; readonly error: ConnectError }
	/** The server refuses the watch, which is not repeated. Nothing follows. */
	| { readonly kind: "ended"; readonly error: ConnectError };
