import { toBinary } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import {
	type ID,
	type OwnerReference,
	type Reference,
	type Resource,
	ResourceSchema,
} from "@plinth/proto";
import { isMarkedForDeletion } from "@plinth/resource";
import { invalidArgument, malformed } from "../errors/refusal.ts";

/** The limits on requests, resources and responses. */
export const resourceServiceLimits = {
	resourceBytes: 1024 * 1024,
	metadataEntries: 64,
	metadataValueBytes: 4 * 1024,
	statuses: 32,
	conditionsPerStatus: 32,
	ownerReferences: 64,
	pageSize: 1_000,
	listBytes: 16 * 1024 * 1024,
	/** How long a page token is valid. */
	pageTokenMs: 5 * 60_000,
	/** Characters of an error message, and bytes of its details: gRPC sends both as headers. */
	errorMessageLength: 1_024,
	errorDetailBytes: 8 * 1_024,
	/** Lists that are read in pages at the same time. A new one evicts the oldest. */
	pagedLists: 1_000,
	/** Characters of the id of a watch in a set. */
	watchIdLength: 64,
} as const;

const metadataKeyPattern = /^[A-Za-z0-9./_-]{1,128}$/;

/** Checks the limits on the parts of a resource. Its size is checked when it is complete. */
export function checkPartLimits(resource: Resource, path: string): void {
	const metadata = Object.entries(resource.metadata);
	// A deletion may add its mark to a resource that has the maximum number of entries.
	const mark = Number(isMarkedForDeletion(resource));
	if (metadata.length - mark > resourceServiceLimits.metadataEntries) {
		throw malformed(
			`${path}.metadata`,
			`has ${metadata.length} entries, more than ${resourceServiceLimits.metadataEntries}`,
		);
	}
	for (const [key, value] of metadata) {
		if (!metadataKeyPattern.test(key)) {
			throw malformed(
				`${path}.metadata`,
				`key ${JSON.stringify(key.slice(0, 140))} does not match ${metadataKeyPattern.source}`,
			);
		}
		// A string has at most three bytes for each of its code units.
		if (
			value.length * 3 > resourceServiceLimits.metadataValueBytes &&
			Buffer.byteLength(value) > resourceServiceLimits.metadataValueBytes
		) {
			throw malformed(
				`${path}.metadata`,
				`the value of ${key} is larger than ${resourceServiceLimits.metadataValueBytes} bytes`,
			);
		}
	}
	if (resource.ownerReferences.length > resourceServiceLimits.ownerReferences) {
		throw malformed(
			`${path}.owner_references`,
			`has ${resource.ownerReferences.length} entries, more than ${resourceServiceLimits.ownerReferences}`,
		);
	}
}

/** Checks the size of a resource before it is stored. */
export function checkSize(resource: Resource): void {
	if (
		approximateSize(resource) <= resourceServiceLimits.resourceBytes / 8 &&
		!holdsUnknownFields(resource)
	) {
		return;
	}
	const bytes = toBinary(ResourceSchema, resource).byteLength;
	if (bytes > resourceServiceLimits.resourceBytes) {
		throw invalidArgument(
			`resource is too large: ${bytes} bytes, more than ${resourceServiceLimits.resourceBytes}`,
		);
	}
}

/**
 * The error message in a form that can be sent: gRPC can't send unpaired surrogates, and few clients accept long
 * headers.
 */
export function sendableMessage(message: string): string {
	return message.length <= resourceServiceLimits.errorMessageLength
		? message.toWellFormed()
		: `${message.slice(0, resourceServiceLimits.errorMessageLength - 1).toWellFormed()}…`;
}

/** The error itself, or a copy with a sendable message if its own can't be sent. */
export function sendableError(error: ConnectError): ConnectError {
	const message = sendableMessage(error.rawMessage);
	if (message === error.rawMessage) {
		return error;
	}
	const bounded = new ConnectError(message, error.code, error.metadata, undefined, error.cause);
	bounded.details = error.details;
	return bounded;
}

/** Whether the resource has fields unknown to this version. They are kept, regardless of their size. */
function holdsUnknownFields(resource: Resource): boolean {
	return (
		(resource.$unknown ?? resource.data?.$unknown) !== undefined ||
		nameHoldsUnknownFields(resource.id) ||
		nameHoldsUnknownFields(resource.owner) ||
		resource.ownerReferences.some(nameHoldsUnknownFields) ||
		Object.values(resource.status).some(
			(entry) =>
				(entry.$unknown ?? entry.updatedAt?.$unknown) !== undefined ||
				entry.conditions.some(
					(each) => each.$unknown !== undefined || nameHoldsUnknownFields(each.resource),
				),
		)
	);
}

function nameHoldsUnknownFields(name: ID | Reference | OwnerReference | undefined): boolean {
	return (
		name !== undefined &&
		(name.$unknown ?? name.type?.$unknown ?? name.tenancy?.$unknown) !== undefined
	);
}

/**
 * An estimate of the encoded size of a resource, without encoding it: exact for its data, code units for
 * strings, a constant for the rest.
 */
export function approximateSize(resource: Resource): number {
	let size = 256 + (resource.data?.value.byteLength ?? 0) + (resource.data?.typeUrl.length ?? 0);
	size += resource.id?.region?.length ?? 0;
	for (const key in resource.metadata) {
		size += key.length + (resource.metadata[key]?.length ?? 0) + 8;
	}
	for (const key in resource.status) {
		size += key.length + 48;
		for (const condition of resource.status[key]?.conditions ?? []) {
			size += 16 + condition.type.length + condition.reason.length + condition.message.length;
			size += nameSize(condition.resource) + (condition.resource?.section.length ?? 0);
			size += condition.resource?.region.length ?? 0;
		}
	}
	for (const reference of resource.ownerReferences) {
		size += nameSize(reference) + reference.uid.length + reference.region.length;
	}
	const { origin } = resource;
	if (origin !== undefined) {
		size += 512 + origin.partition.length + origin.peering.length + 32 * origin.path.length;
	}
	return size;
}

function nameSize(name: Reference | OwnerReference | undefined): number {
	if (name === undefined) {
		return 0;
	}
	const { type, tenancy } = name;
	return (
		32 +
		name.name.length +
		(type === undefined ? 0 : type.group.length + type.groupVersion.length + type.kind.length) +
		(tenancy === undefined ? 0 : tenancy.partition.length + tenancy.namespace.length)
	);
}
