import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { encodeData, newUlid } from "@plinth/resource";
import type { Mutation, StorageBackend } from "@plinth/storage";
import type { ConstraintContext } from "../node/constraint-context.ts";
import type { KeyLike } from "../shadow/resource-key.ts";
import { sameTarget } from "../shadow/shadow.ts";

/**
 * Clears a resource's UNSET references to the targets, by compare-and-swap on the resource as it was read.
 * Writes to the storage directly: no hooks run, and marked resources and namespaces accept the write.
 *
 * @param more - mutations of the same commit.
 * @throws the errors of `store.commit`. On a conflict, read the resource again.
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
