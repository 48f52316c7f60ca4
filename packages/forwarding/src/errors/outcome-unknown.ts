import { Code, ConnectError } from "@connectrpc/connect";
import { encodeField } from "../messages/protobuf-fields.ts";

/** The reason in the detail of errors about calls that may have been executed, and its domain. */
const reason = "OUTCOME_UNKNOWN";
const domain = "plinth.dev";

/** `google.rpc.ErrorInfo` with the numbers of its fields. */
const errorInfo = { type: "google.rpc.ErrorInfo", reason: 1, domain: 2 } as const;

/**
 * Unavailable, for a call that may change something and that may have been executed. Its detail is a `google.rpc.ErrorInfo`
 * with the reason `OUTCOME_UNKNOWN`, by which a client distinguishes it from a call that was not executed.
 */
export function outcomeUnknown(message: string): ConnectError {
	const error = new ConnectError(message, Code.Unavailable);
	error.details.push({
		type: errorInfo.type,
		value: Buffer.concat([
			encodeField(errorInfo.reason, Buffer.from(reason)),
			encodeField(errorInfo.domain, Buffer.from(domain)),
		]),
	});
	return error;
}
