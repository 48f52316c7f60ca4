export { errorCode } from "./error-code.ts";
export type {
	Fields,
	Http2CloseReason,
	Http2Connection,
	Http2Counters,
	Http2Limits,
	Http2Stream,
	RateLimit,
	RequestHandler,
	RequestHead,
	ResetOrigin,
	ServeOptions,
	StreamHandler,
} from "./http2.ts";
export { defaultHttp2Limits } from "./limits.ts";
export { fieldValue } from "./message/fields.ts";
export { serveHttp2 } from "./serve.ts";
