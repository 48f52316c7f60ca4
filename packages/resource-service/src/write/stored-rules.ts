import { equals } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { type ID, type Resource, ResourceSchema } from "@plinth/proto";
import {
	deletionTimestampKey,
	finalizersKey,
	finalizersOf,
	isMarkedForDeletion,
	sameName,
} from "@plinth/resource";
import { invalidArgument, malformedValue, otherUid, staleVersion } from "../errors/refusal.ts";

/*
 * What a write must respect of the resource that is stored already. Each function either passes or
 * throws the refusal; none changes anything but what it returns.
 */

/** The message for a status that comes by Write. */
export function statusRefused(): Error {
	return invalidArgument("resource.status can only be set using the WriteStatus endpoint");
}

/** Checks the version and the uid that the caller gave, where it gave them. */
export function checkIncarnation(given: Resource, stored: Resource): void {
	if (given.version && given.version !== stored.version) {
		throw staleVersion();
	}
	if (given.id?.uid && given.id.uid !== stored.id?.uid) {
		throw otherUid();
	}
}

/** An owner is for life. One that is given without a uid is the stored one. */
export function checkOwner(given: Resource, stored: Resource): void {
	if (!isSameOwner(given.owner, stored.owner)) {
		throw invalidArgument("owner cannot be changed");
	}
}

function isSameOwner(given: ID | undefined, stored: ID | undefined): boolean {
	return (
		sameName(given, stored) && (given === undefined || !given.uid || given.uid === stored?.uid)
	);
}

/** A status that is given must be the stored one. */
export function checkStatus(given: Resource, stored: Resource): void {
	const keys = Object.keys(given.status);
	if (keys.length > 0 && !equals(ResourceSchema, onlyStatus(given), onlyStatus(stored))) {
		throw statusRefused();
	}
}

function onlyStatus(resource: Resource): Resource {
	return {
		$typeName: resource.$typeName,
		version: "",
		generation: "",
		metadata: {},
		ownerReferences: [],
		status: resource.status,
	};
}

/**
 * The metadata that is to be stored: a caller that gave no version does not know of finalizers and
 * marks that came meanwhile, so they are carried over where it says nothing of them.
 */
export function metadataOver(
	given: Resource,
	stored: Resource,
	prepared = given,
): Record<string, string> {
	const metadata = { ...prepared.metadata };
	if (given.version === "") {
		for (const key of [deletionTimestampKey, finalizersKey]) {
			const value = Object.hasOwn(stored.metadata, key) ? stored.metadata[key] : undefined;
			if (value === undefined || Object.hasOwn(given.metadata, key)) {
				continue;
			}
			metadata[key] =
				key === finalizersKey
					? [...new Set([...finalizersOf(stored), ...finalizersOf(prepared)])].join(" ")
					: value;
		}
	}
	return metadata;
}

const timestampPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i;

/** Checks the format of a mark. Of a resource that is marked already, the mark must be the stored one. */
export function checkMark({ metadata }: Pick<Resource, "metadata">): void {
	const timestamp = metadata[deletionTimestampKey];
	if (
		timestamp !== undefined &&
		!(timestampPattern.test(timestamp) && Number.isFinite(Date.parse(timestamp)))
	) {
		throw malformedValue(
			`resource.metadata.${deletionTimestampKey}`,
			"must be an RFC 3339 time",
			timestamp,
		);
	}
}

/** A write that marks a resource for deletion changes nothing else. */
export function checkMarking(given: Resource, metadata: Metadata, stored: Resource): void {
	if (!sameMetadata(metadata, stored.metadata, [deletionTimestampKey])) {
		throw invalidArgument("cannot modify metadata");
	}
	checkSameContent(given, stored);
}

/** Of a marked resource nothing can be changed but that finalizers go. */
export function checkMarked(given: Resource, metadata: Metadata, stored: Resource): void {
	if (!isMarkedForDeletion({ metadata })) {
		throw invalidArgument("cannot remove deletionTimestamp");
	}
	if (metadata[deletionTimestampKey] !== stored.metadata[deletionTimestampKey]) {
		throw invalidArgument("cannot modify deletionTimestamp");
	}
	if (sameMetadata(metadata, stored.metadata, []) && hasSameContent(given, stored)) {
		throw invalidArgument("cannot no-op write resource marked for deletion");
	}
	if (!sameMetadata(metadata, stored.metadata, [finalizersKey])) {
		throw invalidArgument("cannot modify metadata");
	}
	checkSameContent(given, stored);
	const left = new Set(finalizersOf({ metadata }));
	const before = new Set(finalizersOf(stored));
	if (left.size >= before.size || !left.isSubsetOf(before)) {
		throw invalidArgument("expected at least one finalizer to be removed");
	}
}

function checkSameContent(given: Resource, stored: Resource): void {
	if (!sameData(given.data, stored.data)) {
		throw invalidArgument("cannot modify data");
	}
	if (!sameOwnerReferences(given, stored)) {
		throw invalidArgument("cannot modify owner_references");
	}
}

type Metadata = Readonly<Record<string, string>>;

/** Whether a write leaves everything but finalizers and the mark as it is stored. */
export function leavesContent(resource: Resource, stored: Resource): boolean {
	return (
		resource.id?.type?.groupVersion === stored.id?.type?.groupVersion &&
		hasSameContent(resource, stored) &&
		sameMetadata(resource.metadata, stored.metadata, [finalizersKey, deletionTimestampKey])
	);
}

function hasSameContent(given: Resource, stored: Resource): boolean {
	return sameData(given.data, stored.data) && sameOwnerReferences(given, stored);
}

function sameData(a: Any | undefined, b: Any | undefined): boolean {
	if (a === undefined || b === undefined) {
		return a === b;
	}
	return a.typeUrl === b.typeUrl && Buffer.compare(a.value, b.value) === 0;
}

function sameOwnerReferences(a: Resource, b: Resource): boolean {
	if (a.ownerReferences.length === 0 && b.ownerReferences.length === 0) {
		return true;
	}
	const only = (resource: Resource): Resource => ({
		...onlyStatus(resource),
		status: {},
		ownerReferences: resource.ownerReferences,
	});
	return equals(ResourceSchema, only(a), only(b));
}

function sameMetadata(a: Metadata, b: Metadata, except: readonly string[]): boolean {
	const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
	for (const key of keys) {
		if (
			!except.includes(key) &&
			(!Object.hasOwn(a, key) || !Object.hasOwn(b, key) || a[key] !== b[key])
		) {
			return false;
		}
	}
	return true;
}
