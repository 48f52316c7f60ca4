import { Code, ConnectError } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { type Fields, fieldValue } from "@plinth/http2";
import { appendFields, toHeaders } from "./wire-headers.ts";

const detailsField = "grpc-status-details-bin";

/** Whether headers or trailers contain a status. */
export function hasStatus(fields: Fields): boolean {
	return fieldValue(fields, "grpc-status") !== undefined;
}

/**
 * The error in trailers, or in the headers of a response without messages. `undefined` if the status is OK or
 * missing. Its metadata consists of `fields` and `further`.
 */
export function statusError(fields: Fields, further?: Fields): ConnectError | undefined {
	const status = fieldValue(fields, "grpc-status");
	if (status === undefined || status === "0") {
		return undefined;
	}
	const metadata = toHeaders(fields);
	const error = errorWithDetails(metadata) ?? errorOfStatus(status, metadata);
	if (further !== undefined) {
		appendFields(error.metadata, further);
	}
	error.isWireError = true;
	return error;
}

/** The error with its details, if they can be decoded and describe an error. */
function errorWithDetails(metadata: Headers): ConnectError | undefined {
	if (!metadata.has(detailsField)) {
		return undefined;
	}
	try {
		const error = findTrailerError(metadata);
		return error !== undefined && error.code in Code ? error : undefined;
	} catch {
		return undefined;
	}
}

function errorOfStatus(status: string, metadata: Headers): ConnectError {
	const code = /^\d{1,3}$/.test(status) ? Number(status) : -1;
	return code in Code
		? new ConnectError(decodeMessage(metadata.get("grpc-message") ?? ""), code, metadata)
		: new ConnectError(`invalid grpc-status: ${status}`, Code.Internal, metadata);
}

/** As the gRPC specification requires, a message with malformed escapes is shown as it is. */
function decodeMessage(message: string): string {
	try {
		return decodeURIComponent(message);
	} catch {
		return message;
	}
}
