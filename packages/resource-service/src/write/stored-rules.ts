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
import { invalidArgument, malformedValue, uidMismatch } from "../errors/refusal.ts";
import { refuseStaleVersion } from "./stale-version.ts";

/*
 * The rules that a write of an existing resource must follow. Each function returns if the rule holds and
 * throws the refusal otherwise. None modifies its arguments.
 */

/** The error for a status in a Write. */
export function statusRefused(): Error {
	return invalidArgument("resource.status can only be set using the WriteStatus endpoint");
}

/** Checks the version and the uid of the request, if present. */
export function checkVersionAndUid(input: Resource, stored: Resource): void {
	refuseStaleVersion(input.version, stored);
	if (input.id?.uid && input.id.uid !== stored.id?.uid) {
		throw uidMismatch();
	}
}

/** The owner never changes. An owner without a uid means the stored one. */
export function checkOwner(input: Resource, stored: Resource): void {
	if (!isSameOwner(input.owner, stored.owner)) {
		throw invalidArgument("owner cannot be changed");
	}
}

function isSameOwner(input: ID | undefined, stored: ID | undefined): boolean {
	return (
		sameName(input, stored) && (input === undefined || !input.uid || input.uid === stored?.uid)
	);
}

/** A status in the request must equal the stored one. */
export function checkStatus(input: Resource, stored: Resource): void {
	const keys = Object.keys(input.status);
	if (keys.length > 0 && !equals(ResourceSchema, onlyStatus(input), onlyStatus(stored))) {
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

const carriedOver = [deletionTimestampKey, finalizersKey] as const;

/**
 * The metadata to store. A caller that sends no version may not know about finalizers and a deletion mark
 * added since it read the resource, so they are carried over unless the request sets them.
 */
export function mergeMetadata(
	input: Resource,
	stored: Resource,
	prepared = input,
): Record<string, string> {
	const metadata = { ...prepared.metadata };
	if (input.version === "") {
		for (const key of carriedOver) {
			const value = Object.hasOwn(stored.metadata, key) ? stored.metadata[key] : undefined;
			if (value === undefined || Object.hasOwn(input.metadata, key)) {
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

/** Checks the format of a deletion timestamp. The mark of a marked resource never changes: see `checkMarked`. */
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

const whileMarking = "a write that marks a resource for deletion can't change";
const whileMarked = "the resource is marked for deletion, so a write can't";

/** A write that marks a resource for deletion must change nothing else. */
export function checkMarking(input: Resource, metadata: Metadata, stored: Resource): void {
	if (!sameMetadata(metadata, stored.metadata, [deletionTimestampKey])) {
		throw invalidArgument(`${whileMarking} its metadata`);
	}
	checkSameContent(input, stored, whileMarking);
}

/** A write of a marked resource can only remove finalizers. */
export function checkMarked(input: Resource, metadata: Metadata, stored: Resource): void {
	if (!isMarkedForDeletion({ metadata })) {
		throw invalidArgument(`${whileMarked} remove its deletionTimestamp`);
	}
	if (metadata[deletionTimestampKey] !== stored.metadata[deletionTimestampKey]) {
		throw invalidArgument(`${whileMarked} change its deletionTimestamp`);
	}
	if (sameMetadata(metadata, stored.metadata, []) && hasSameContent(input, stored)) {
		throw invalidArgument(`${whileMarked} leave it as it is: only finalizers can be removed`);
	}
	if (!sameMetadata(metadata, stored.metadata, [finalizersKey])) {
		throw invalidArgument(`${whileMarked} change its metadata, except to remove finalizers`);
	}
	checkSameContent(input, stored, `${whileMarked} change`);
	const left = new Set(finalizersOf({ metadata }));
	const before = new Set(finalizersOf(stored));
	if (left.size >= before.size || !left.isSubsetOf(before)) {
		throw invalidArgument(`${whileMarked} do anything but remove finalizers`);
	}
}

function checkSameContent(input: Resource, stored: Resource, refusal: string): void {
	if (!sameData(input.data, stored.data)) {
		throw invalidArgument(`${refusal} its data`);
	}
	if (!sameOwnerReferences(input, stored)) {
		throw invalidArgument(`${refusal} its owner_references`);
	}
}

type Metadata = Readonly<Record<string, string>>;

/** Whether a write changes nothing but finalizers and the deletion mark. */
export function keepsContent(resource: Resource, stored: Resource): boolean {
	return (
		resource.id?.type?.groupVersion === stored.id?.type?.groupVersion &&
		hasSameContent(resource, stored) &&
		sameMetadata(resource.metadata, stored.metadata, [finalizersKey, deletionTimestampKey])
	);
}

function hasSameContent(input: Resource, stored: Resource): boolean {
	return sameData(input.data, stored.data) && sameOwnerReferences(input, stored);
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
	return hasEntries(a, b, except) && hasEntries(b, a, except);
}

/** Whether the metadata has all entries of the other one, except for these keys. */
function hasEntries(metadata: Metadata, other: Metadata, except: readonly string[]): boolean {
	return Object.keys(other).every(
		(key) => except.includes(key) || (Object.hasOwn(metadata, key) && metadata[key] === other[key]),
	);
}
