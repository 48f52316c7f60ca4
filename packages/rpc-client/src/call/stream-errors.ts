import { constants } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";

/** The error codes of HTTP/2 (RFC 9113, section 7), by number. */
const names = [
	"NO_ERROR",
	"PROTOCOL_ERROR",
	"INTERNAL_ERROR",
	"FLOW_CONTROL_ERROR",
	"SETTINGS_TIMEOUT",
	"STREAM_CLOSED",
	"FRAME_SIZE_ERROR",
	"REFUSED_STREAM",
	"CANCEL",
	"COMPRESSION_ERROR",
	"CONNECT_ERROR",
	"ENHANCE_YOUR_CALM",
	"INADEQUATE_SECURITY",
	"HTTP_1_1_REQUIRED",
];

/** The HTTP/2 codes that do not map to Internal. */
const codes: Readonly<Record<number, Code>> = {
	[constants.NGHTTP2_REFUSED_STREAM]: Code.Unavailable,
	[constants.NGHTTP2_CANCEL]: Code.Canceled,
	[constants.NGHTTP2_ENHANCE_YOUR_CALM]: Code.ResourceExhausted,
	[constants.NGHTTP2_INADEQUATE_SECURITY]: Code.PermissionDenied,
	[constants.NGHTTP2_HTTP_1_1_REQUIRED]: Code.PermissionDenied,
};

/** The error of a call whose stream was closed with a code, mapped as in the gRPC specification. */
export function resetError(code: number, cause: unknown): ConnectError {
	const message =
		code === constants.NGHTTP2_NO_ERROR
			? "protocol error: missing status"
			: `http/2 stream closed with error code ${nameOf(code)}`;
	return new ConnectError(message, codes[code] ?? Code.Internal, undefined, undefined, cause);
}

/** The name and number of a code, as in `CANCEL (0x8)`. */
export function nameOf(code: number): string {
	return `${names[code] ?? "unknown"} (0x${code.toString(16)})`;
}
