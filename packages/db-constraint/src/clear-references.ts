import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { encodeData, newUlid } from "@plinth/resource";
import type { Mutation, StorageBackend } from "@plinth/storage";
import type { ConstraintContext } from "./constraint-context.ts";
import type { KeyLike } from "./resource-key.ts";
import { sameTarget } from "./shadow.ts";

/**
 * Clears a resource's references to the targets, those with the rule UNSET alone, by compare-and-swap on
 * the resource as it was read. Straight to the storage: no hooks run, and it is allowed wherever the
 * resource is.
 *
 * @param more - what is committed with it.
 * @throws what a commit of the store throws: conflicts mean looking again.
 */
export async function clearReferences(
	{ descriptor, environment, runtime }: ConstraintContext,
	store: StorageBackend,
	resource: Resource,
	targets: readonly KeyLike[],
	more: readonly Mutation[] = [],
): Promise<void> {
	const cleared = descriptor.without(resource, ({ rule, target }) => {
		const located = { ...target, region: target.region || environment.self.region };
		return rule === OnDelete.UNSET && targets.some((each) => sameTarget(each, located));
	});
	if (cleared?.data === undefined) {
		return;
	}
	const next = {
		...resource,
		generation: newUlid(runtime),
		data: encodeData(cleared.type.schema, cleared.data),
	};
	await store.commit([{ op: "put", resource: next, expectedVersion: resource.version }, ...more]);
}
