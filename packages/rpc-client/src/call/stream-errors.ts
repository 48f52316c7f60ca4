import { Code, ConnectError } from "@connectrpc/connect";
import { errorCode } from "@plinth/http2";

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
	[errorCode.refusedStream]: Code.Unavailable,
	[errorCode.cancel]: Code.Canceled,
	[errorCode.enhanceYourCalm]: Code.ResourceExhausted,
	[errorCode.inadequateSecurity]: Code.PermissionDenied,
	[errorCode.http11Required]: Code.PermissionDenied,
};

/** The error of a call whose stream was closed with a code, mapped as in the gRPC specification. */
export function resetError(code: number): ConnectError {
	const message =
		code === errorCode.noError
			? "protocol error: missing status"
			: `http/2 stream closed with error code ${nameOf(code)}`;
	return new ConnectError(message, codes[code] ?? Code.Internal);
}

/** The name and number of a code, as in `CANCEL (0x8)`. */
export function nameOf(code: number): string {
	return `${names[code] ?? "unknown"} (0x${code.toString(16)})`;
}
