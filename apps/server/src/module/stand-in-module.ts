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
 * Replaces a module that is lost, so that its resources can be deleted. The module has its types, created by
 * `standInType`, and for each a controller that removes the finalizers of resources that are marked for deletion.
 * The cleanup that those finalizers were for does not happen.
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
			// The server itself removes the finalizer of references, once they are released.
			const kept = finalizers.filter((name) => name === referencesFinalizer);
			if (kept.length < finalizers.length) {
				const metadata = { ...resource.metadata, [finalizersKey]: kept.join(" ") };
				await client.write({ resource: { ...resource, metadata } });
			}
		},
	});
}
