import type { Resource } from "@plinth/proto";

/** The metadata key of the finalizers, which defer a deletion. */
export const finalizersKey = "finalizers";

/** The metadata key of the time at which a resource was marked for deletion (RFC 3339). */
export const deletionTimestampKey = "deletionTimestamp";

type WithMetadata = Pick<Resource, "metadata">;

/** Whether the resource is marked for deletion and will be deleted once it has no finalizers. */
export function isMarkedForDeletion(resource: WithMetadata): boolean {
	return Object.hasOwn(resource.metadata, deletionTimestampKey);
}

/** The finalizers of the resource, in stored order. */
export function finalizersOf(resource: WithMetadata): readonly string[] {
	const value = Object.hasOwn(resource.metadata, finalizersKey)
		? resource.metadata[finalizersKey]
		: undefined;
	return value ? value.split(" ") : [];
}

/** Whether the resource has a finalizer of that name. */
export function hasFinalizer(resource: WithMetadata, name: string): boolean {
	// Each write asks, and hardly any resource has one.
	return Object.hasOwn(resource.metadata, finalizersKey) && finalizersOf(resource).includes(name);
}

/** Adds a finalizer if it is not present. Modifies the resource in place. */
export function addFinalizer(resource: WithMetadata, name: string): void {
	if (!hasFinalizer(resource, name)) {
		resource.metadata[finalizersKey] = [...finalizersOf(resource), name].join(" ");
	}
}

/**
 * Removes a finalizer. Modifies the resource in place: an empty list remains as an empty entry, which a
 * write interprets as "none" rather than "as stored".
 */
export function removeFinalizer(resource: WithMetadata, name: string): void {
	if (hasFinalizer(resource, name)) {
		resource.metadata[finalizersKey] = finalizersOf(resource)
			.filter((other) => other !== name)
			.join(" ");
	}
}
