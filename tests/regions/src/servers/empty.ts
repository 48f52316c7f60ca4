import type { Regions } from "@plinth/example-regions/regions";
import { remove } from "../clients/client.ts";
import { places } from "../clients/places.ts";
import type { World } from "../clients/world.ts";
import { readEndState } from "../end-state/read-end-state.ts";
import { keyOf } from "../history/history.ts";
import { settle } from "./settle.ts";

/**
 * Deletes everything, whatever order that takes: answers what can't be deleted, and the shadows that are
 * left of what is gone.
 */
export async function empty(
	regions: Regions,
	world: World,
	limitMs: number,
): Promise<readonly string[]> {
	return settle(async () => {
		const { resources, shadows } = await readEndState(regions);
		for (const { key, seen } of resources) {
			const place = places.find((each) => keyOf(each) === key);
			if (place !== undefined && !seen.marked) {
				await remove(world, place);
			}
		}
		return [
			...resources.map(({ key }) => `${key} is there`),
			...shadows.map(({ key, lifecycle }) => `${key} has a shadow, ${lifecycle}`),
		];
	}, limitMs);
}
