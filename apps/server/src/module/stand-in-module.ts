import { type Controller, defineController } from "@plinth/controller";
import { referencesFinalizer } from "@plinth/db-constraint";
import {
	finalizersKey,
	finalizersOf,
	isMarkedForDeletion,
	type ResourceType,
} from "@plinth/resource";
import { defineModule, type Module } from "./define-module.ts";

/**
 * A module in the place of one that is lost, so that what it has stored can go: its types, made by
 * `standInType`, and for each a controller that removes the finalizers of resources that are marked for
 * deletion. What those finalizers were for is not done.
 */
export function standInModule(types: readonly ResourceType[]): Module {
	return defineModule({
		name: "stand-in",
		types,
		controllers: types.map(finalizerRemoval),
	});
}

function finalizerRemoval(type: ResourceType): Controller {
	return defineController({
		name: `stand-in/${type.key}`,
		manages: type,
		async reconcile({ cache, client }, { id }): Promise<void> {
			const resource = cache.get(type, id)?.resource;
			if (resource === undefined || !isMarkedForDeletion(resource)) {
				return;
			}
			const finalizers = finalizersOf(resource);
			// References are the server's: they are released as always.
			const kept = finalizers.filter((name) => name === referencesFinalizer);
			if (kept.length < finalizers.length) {
				const metadata = { ...resource.metadata, [finalizersKey]: kept.join(" ") };
				await client.write({ resource: { ...resource, metadata } });
			}
		},
	});
}
