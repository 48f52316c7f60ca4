import type { Http2Limits } from "./http2.ts";

/** The limits of a connection unless the caller sets others. */
export const defaultHttp2Limits: Http2Limits = {
	maxConcurrentStreams: 256,
	maxHeaderListBytes: 16 * 1024,
	maxContinuations: 8,
	maxSettings: 32,
	headerTableBytes: 4096,
	streamWindowBytes: 256 * 1024,
	connectionWindowBytes: 1024 * 1024,
	maxFrameBytes: 16 * 1024,
	streamHighWaterMark: 64 * 1024,
	maxUnsentBytes: 64 * 1024 * 1024,
	maxBufferedBytes: 1024 * 1024,
	controlFrames: { burst: 1000, perSecond: 200 },
	settingsFrames: { burst: 100, perSecond: 10 },
	streamErrors: { burst: 1000, perSecond: 100 },
	prefaceTimeoutMs: 10_000,
	headerBlockTimeoutMs: 60_000,
	stallTimeoutMs: 60_000,
	closeTimeoutMs: 2_000,
};
