import { defineController } from "@plinth/controller";
import { Condition_State } from "@plinth/proto";
import { Animal } from "../types/animal.ts";

/** Feeds each animal. */
export const keeper = defineController({
	name: "keeper",
	manages: Animal,
	async reconcile(ctx, { id }) {
		const animal = ctx.cache.get(Animal, id);
		if (animal?.resource.id !== undefined) {
			await ctx.writeStatusIfChanged(animal.resource, {
				conditions: [{ type: "Fed", state: Condition_State.TRUE, reason: "Hay", message: "" }],
			});
		}
	},
});
