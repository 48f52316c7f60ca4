import { toBinary } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { invalidArgument, malformed } from "./refusal.ts";

/** What a request, a resource or an answer may hold at most. */
export const limits = {
	resourceBytes: 1024 * 1024,
	metadataEntries: 64,
	metadataValueBytes: 4 * 1024,
	statuses: 32,
	conditionsPerStatus: 32,
	ownerReferences: 64,
	pageSize: 1_000,
	listBytes: 16 * 1024 * 1024,
	/** How long a page token is good for. */
	pageTokenMs: 5 * 60_000,
	/** Lists that are being paged at the same time; the oldest gives way to a new one. */
	pagedLists: 1_000,
} as const;

const metadataKeyPattern = /^[A-Za-z0-9./_-]{1,128}$/;

/** Checks the limits on a resource's parts. Its size is checked once it is built. */
export function checkPartLimits(resource: Resource, path: string): void {
	const metadata = Object.entries(resource.metadata);
	if (metadata.length > limits.metadataEntries) {
		throw malformed(
			`${path}.metadata`,
			`has ${metadata.length} entries, more than ${limits.metadataEntries}`,
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
			value.length * 3 > limits.metadataValueBytes &&
			Buffer.byteLength(value) > limits.metadataValueBytes
		) {
			throw malformed(
				`${path}.metadata`,
				`the value of ${key} is larger than ${limits.metadataValueBytes} bytes`,
			);
		}
	}
	if (resource.ownerReferences.length > limits.ownerReferences) {
		throw malformed(
			`${path}.owner_references`,
			`has ${resource.ownerReferences.length} entries, more than ${limits.ownerReferences}`,
		);
	}
}

/** Checks the size of a resource as it is about to be stored. */
export function checkSize(resource: Resource): void {
	if (approximateSize(resource) <= limits.resourceBytes / 8) {
		return;
	}
	const bytes = toBinary(ResourceSchema, resource).byteLength;
	if (bytes > limits.resourceBytes) {
		throw invalidArgument(
			`resource is too large: ${bytes} bytes, more than ${limits.resourceBytes}`,
		);
	}
}

/**
 * About how many bytes the resource takes on the wire, without writing it: exact for its data, code
 * units for strings, a constant for the rest.
 */
export function approximateSize(resource: Resource): number {
	let size = 256 + (resource.data?.value.byteLength ?? 0) + (resource.data?.typeUrl.length ?? 0);
	for (const key in resource.metadata) {
		size += key.length + (resource.metadata[key]?.length ?? 0) + 8;
	}
	for (const key in resource.status) {
		size += key.length + 48;
		for (const condition of resource.status[key]?.conditions ?? []) {
			size += 16 + condition.type.length + condition.reason.length + condition.message.length;
			size += condition.resource === undefined ? 0 : 128;
		}
	}
	return size + resource.ownerReferences.length * 192;
}
