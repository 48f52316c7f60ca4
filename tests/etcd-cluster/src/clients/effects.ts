import { decode } from "@plinth/resource";
import { Effect, type EffectData, effectData } from "../module/types.ts";
import type { ResourceClient } from "./life.ts";

/** The first matching effect that a new watch sends. */
export async function effectWhere(
	client: ResourceClient,
	isIt: (effect: EffectData) => boolean,
): Promise<EffectData> {
	const end = new AbortController();
	try {
		for await (const { event } of client.watchList({ type: Effect.type }, { signal: end.signal })) {
			const resource = event.case === "upsert" ? event.value.resource : undefined;
			const effect = resource && effectData(decode(Effect, resource).data.title);
			if (effect !== undefined && isIt(effect)) {
				return effect;
			}
		}
	} finally {
		end.abort();
	}
	throw new Error("the watch has ended");
}
