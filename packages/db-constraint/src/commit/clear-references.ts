import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { encodeData, newUlid } from "@plinth/resource";
import type { Mutation, StorageBackend } from "@plinth/storage";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { locate } from "../schema/locate-references.ts";
import type { DeclaredReference } from "../schema/service-descriptor.ts";
import { sameTarget } from "../shadow/shadow.ts";
import { recordId, type StoredShadow } from "../shadow/shadow-records.ts";
import { recordsOfFields } from "./records-of-fields.ts";

/** A resource and its shadow, which was read after it. */
export interface ReadResource {
	readonly resource: Resource;
	readonly stored: StoredShadow;
}

/**
 * Clears the UNSET references of a resource that have one of the records, by compare-and-swap on the resource and on its
 * shadow. Another reference to the same target stays, if it has another record: it may have lost its target.
 * Writes to the storage directly: no hooks run, and marked resources and namespaces accept the write.
 *
 * @param records - records of the shadow, the objects in it.
 * @param more - mutations of the same commit.
 * @throws the errors of `store.commit`. On a conflict, read both again.
 */
export async function clearReferences(
	context: ConstraintContext,
	store: StorageBackend,
	{ resource, stored }: ReadResource,
	records: readonly OutgoingReference[],
	more: readonly Mutation[] = [],
): Promise<void> {
	const { descriptor, runtime } = context;
	const recordOf = recordsOfFields(context, resource, stored.shadow, records);
	const isCleared = (field: DeclaredReference) => {
		if (isPlanted("clear all fields with the target")) {
			const { target } = locate(context, field);
			return records.some((each) => sameTarget(each.target, target));
		}
		return recordOf(field) !== undefined;
	};
	const cleared = descriptor.without(
		resource,
		(field) => field.rule === OnDelete.UNSET && isCleared(field),
	);
	if (cleared?.data === undefined) {
		return;
	}
	const next = {
		...resource,
		generation: newUlid(runtime),
		data: encodeData(cleared.type.schema, cleared.data),
	};
	await store.commit([
		{ op: "put", resource: next, expectedVersion: resource.version },
		{ op: "assert", id: recordId(stored.name), expectedVersion: stored.version },
		...more,
	]);
}
