import { isEnveloped } from "../call/envelopes.ts";
import type { InboundCall } from "../inbound-call.ts";
import { visitFields } from "../messages/protobuf-fields.ts";

/** The methods of writes that can have a condition. */
export type WriteMethod = "Write" | "WriteStatus" | "Delete";

/** The numbers of the fields that are read, as in resource.proto and resource_service.proto. */
const fields = {
	write: { resource: 1, createOnly: 2 },
	resource: { version: 3 },
	writeStatus: { version: 2 },
	delete: { version: 2 },
} as const;

const prefixBytes = 5;

/**
 * Whether a write has a condition that no longer holds once it was executed: the version that it replaces or deletes, or that
 * nothing exists. False if the request can't be read.
 */
export function isConditional(
	method: WriteMethod,
	call: Pick<InboundCall, "header">,
	body: Uint8Array,
): boolean {
	const contentType = call.header("content-type") ?? "";
	if (call.header("content-encoding") !== undefined) {
		return false;
	}
	const envelope = isEnveloped(contentType);
	if (envelope && body[0] !== 0) {
		return false;
	}
	const message = envelope ? body.subarray(prefixBytes) : body;
	try {
		return /json/.test(contentType)
			? isConditionalJson(method, JSON.parse(new TextDecoder().decode(message)))
			: isConditionalProtobuf(method, message);
	} catch {
		// The server says what is wrong with it.
		return false;
	}
}

function isConditionalProtobuf(method: WriteMethod, message: Uint8Array): boolean {
	// Of a field that occurs several times, the last one counts.
	let hasVersion = false;
	let isCreateOnly = false;
	const visit = (number: number, start: number, end: number) => {
		if (method !== "Write") {
			const field = method === "Delete" ? fields.delete.version : fields.writeStatus.version;
			hasVersion = number === field ? end > start : hasVersion;
		} else if (number === fields.write.resource) {
			visitFields(message, start, end, (inner, innerStart, innerEnd) => {
				hasVersion = inner === fields.resource.version ? innerEnd > innerStart : hasVersion;
			});
		}
	};
	visitFields(message, 0, message.length, visit, (number, value) => {
		if (method === "Write" && number === fields.write.createOnly) {
			isCreateOnly = value !== 0;
		}
	});
	return hasVersion || isCreateOnly;
}

interface JsonWrite {
	readonly version?: unknown;
	readonly resource?: { readonly version?: unknown } | null;
	readonly createOnly?: unknown;
	readonly create_only?: unknown;
}

function isConditionalJson(method: WriteMethod, request: JsonWrite): boolean {
	if (method !== "Write") {
		return isVersion(request.version);
	}
	return (
		request.createOnly === true ||
		request.create_only === true ||
		isVersion(request.resource?.version)
	);
}

function isVersion(value: unknown): boolean {
	return typeof value === "string" && value !== "";
}
