import type { Resource } from "@plinth/proto";

/**
 * One step of a watch. Resources are the stored objects themselves: shared and immutable.
 *
 * `version`, where it is set, is where another watch may resume: on the last event that this watch
 * gets of a revision, on the end of the snapshot and on bookmarks.
 */
export type WatchEvent =
	| {
			readonly kind: "upsert";
			readonly resource: Resource;
			/** What it replaced; absent for what is new, and within a snapshot. */
			readonly previous?: Resource | undefined;
			readonly version?: string | undefined;
	  }
	| {
			readonly kind: "delete";
			/** As it last was. */
			readonly resource: Resource;
			readonly version?: string | undefined;
	  }
	| { readonly kind: "end-of-snapshot"; readonly version: string }
	| { readonly kind: "bookmark"; readonly version: string };
