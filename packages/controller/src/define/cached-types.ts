import type { ResourceType } from "@plinth/resource";
import type { Controller } from "./controller.ts";

/** The types that a controller caches: the managed one first, then those it watches. */
export function cachedTypes(controller: Controller): readonly ResourceType[] {
	return [
		controller.manages,
		...controller.watches.flatMap((watch) => (watch.kind === "resources" ? [watch.type] : [])),
	];
}
