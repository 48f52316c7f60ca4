import type { Resource } from "@plinth/proto";
import type { ResourceType } from "@plinth/resource";
import type { Controller } from "./controller.ts";
import type { WatchedRegions } from "./watch.ts";

/** The types that a controller caches: the managed one first, then those it watches. */
export function cachedTypes(controller: Controller): readonly ResourceType[] {
	const watched = controller.watches.flatMap((watch) =>
		watch.kind === "resources" && watch.type.family !== controller.manages.family
			? [watch.type]
			: [],
	);
	return [controller.manages, ...watched];
}

/** The regions whose copies of the type a controller caches. */
export function cachedRegions(controller: Controller, type: ResourceType): WatchedRegions {
	const watch = controller.watches.find(
		(each) => each.kind === "resources" && each.type.family === type.family,
	);
	return watch?.kind === "resources" ? watch.regions : [];
}

/**
 * Whether a controller that caches copies of these regions caches the resource. Copies of other clusters' resources are in
 * no cache; what an import creates around them is.
 */
export function isCached(regions: WatchedRegions, { id, origin }: Resource): boolean {
	if (id?.region) {
		return regions === "*" || regions.includes(id.region);
	}
	return origin === undefined || origin.uid === "";
}
