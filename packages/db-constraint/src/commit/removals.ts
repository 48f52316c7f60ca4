import type { Resource } from "@plinth/proto";
import {
	addFinalizer,
	decodeShared,
	deletionTimestampKey,
	finalizersKey,
	finalizersOf,
	hasFinalizer,
	isMarkedForDeletion,
	nameKey,
	newUlid,
	removeFinalizer,
	Tombstone,
} from "@plinth/resource";
import { deletionWithTombstone } from "@plinth/resource-service";
import type { Runtime } from "@plinth/runtime";
import type { Mutation } from "@plinth/storage";
import { referencesFinalizer } from "../shadow/shadow.ts";

/** Whether the mutation is the tombstone of the resource. */
export function isTombstoneOf(mutation: Mutation, resource: Resource): boolean {
	if (mutation.op !== "put" || !isTombstone(mutation.resource)) {
		return false;
	}
	const { owner } = decodeShared(Tombstone, mutation.resource).data;
	return (
		owner !== undefined &&
		resource.id !== undefined &&
		nameKey(owner) === nameKey(resource.id) &&
		owner.uid === resource.id.uid
	);
}

/** Whether the resource is a tombstone. */
export function isTombstone({ id }: Pick<Resource, "id">): boolean {
	return id?.type?.kind === Tombstone.type.kind && id.type.group === Tombstone.type.group;
}

/** The resource marked for deletion, with the finalizer of references. */
export function markedWithReferences(runtime: Runtime, resource: Resource): Resource {
	const marked = {
		...resource,
		generation: newUlid(runtime),
		metadata: {
			[deletionTimestampKey]: new Date(runtime.clock.now()).toISOString(),
			...resource.metadata,
		},
	};
	addFinalizer(marked, referencesFinalizer);
	return marked;
}

/** The resource with the finalizer of references as its only one. */
export function withReferencesAlone(runtime: Runtime, resource: Resource): Resource {
	return {
		...resource,
		generation: newUlid(runtime),
		metadata: { ...resource.metadata, [finalizersKey]: referencesFinalizer },
	};
}

/** The written resource with the finalizer of references as it is stored. */
export function withStoredFinalizer(written: Resource, stored: Resource | undefined): Resource {
	const has = stored !== undefined && hasFinalizer(stored, referencesFinalizer);
	const times = finalizersOf(written).filter((each) => each === referencesFinalizer).length;
	if (times === (has ? 1 : 0)) {
		return written;
	}
	const resource = { ...written, metadata: { ...written.metadata } };
	removeFinalizer(resource, referencesFinalizer);
	if (has) {
		addFinalizer(resource, referencesFinalizer);
	}
	return resource;
}

/** The mutations that delete a resource: its deletion with a tombstone, or a mark if it has finalizers. */
export function deletion(runtime: Runtime, resource: Resource): readonly Mutation[] {
	if (finalizersOf(resource).length === 0) {
		return deletionWithTombstone(runtime, resource);
	}
	if (isMarkedForDeletion(resource)) {
		return [];
	}
	const marked = {
		...resource,
		generation: newUlid(runtime),
		metadata: {
			...resource.metadata,
			[deletionTimestampKey]: new Date(runtime.clock.now()).toISOString(),
		},
	};
	return [{ op: "put", resource: marked, expectedVersion: resource.version }];
}
