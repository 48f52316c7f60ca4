import type { Resource } from "@plinth/proto";

/**
 * One step of a watch. Resources are the stored objects themselves: shared and immutable.
 *
 * `version`, if set, is a version that another watch may resume after. It is set on the last event that
 * this watch receives of a revision, on the end of the snapshot and on bookmarks.
 */
export type WatchEvent =
	| {
			readonly kind: "upsert";
			readonly resource: Resource;
			/** The resource that it replaced; absent for new resources and within a snapshot. */
			readonly previous?: Resource | undefined;
			readonly version?: string | undefined;
	  }
	| {
			readonly kind: "delete";
			/** The last stored resource. */
			readonly resource: Resource;
			readonly version?: string | undefined;
	  }
	| { readonly kind: "end-of-snapshot"; readonly version: string }
	| { readonly kind: "bookmark"; readonly version: string };
