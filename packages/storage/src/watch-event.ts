import type { Resource } from "@plinth/proto";
import type { DerivedData } from "./watch/derived-data.ts";

/**
 * One step of a watch. Resources are the stored objects themselves: shared and immutable.
 *
 * `version`, if set, is a version that another watch may resume after. It is set on the last event that
 * this watch receives of a revision, on the end of the snapshot and on bookmarks.
 *
 * `derived` is where to keep what is derived from the event for all watches. It is absent within a snapshot.
 */
export type WatchEvent =
	| {
			readonly kind: "upsert";
			readonly resource: Resource;
			/** The resource that it replaced; absent for new resources and within a snapshot. */
			readonly previous?: Resource | undefined;
			readonly version?: string | undefined;
			readonly derived?: DerivedData | undefined;
	  }
	| {
			readonly kind: "delete";
			/** The last stored resource. */
			readonly resource: Resource;
			readonly version?: string | undefined;
			readonly derived?: DerivedData | undefined;
	  }
	| { readonly kind: "end-of-snapshot"; readonly version: string }
	| { readonly kind: "bookmark"; readonly version: string };
