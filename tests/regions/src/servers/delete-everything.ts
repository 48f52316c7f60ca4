import type { Regions } from "@plinth/example-regions/regions";
import { remove } from "../clients/client.ts";
import { places } from "../clients/places.ts";
import type { SharedState } from "../clients/shared-state.ts";
import { readEndState } from "../end-state/read-end-state.ts";
import { keyOf } from "../history/history.ts";
import { settle } from "./settle.ts";

/**
 * Deletes everything in any order. Returns the resources that can't be deleted, and the shadows that are
 * left.
 */
export async function deleteEverything(
	regions: Regions,
	shared: SharedState,
	limitMs: number,
): Promise<readonly string[]> {
	return settle(async () => {
		const { resources, shadows } = await readEndState(regions);
		for (const { key, seen } of resources) {
			const place = places.find((each) => keyOf(each) === key);
			if (place !== undefined && !seen.marked) {
				await remove(shared, place);
			}
		}
		return [
			...resources.map(({ key }) => `${key} still exists`),
			...shadows.map(({ key, lifecycle }) => `${key} has a shadow, ${lifecycle}`),
		];
	}, limitMs);
}
