export { connectHttp2 } from "./connect.ts";
export { errorCode } from "./error-code.ts";
export type {
	ConnectOptions,
	Fields,
	Http2ClientConnection,
	Http2ClientStream,
	Http2CloseReason,
	Http2Connection,
	Http2Counters,
	Http2Limits,
	Http2Stream,
	RateLimit,
	RequestHandler,
	RequestHead,
	ResetOrigin,
	ResponseHandler,
	ServeOptions,
	StreamHandler,
} from "./http2.ts";
export { defaultHttp2Limits } from "./limits.ts";
export { fieldValue } from "./message/fields.ts";
export { serveHttp2 } from "./serve.ts";
