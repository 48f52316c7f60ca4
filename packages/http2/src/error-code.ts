/** The error codes of RFC 9113, section 7. */
export const errorCode = {
	noError: 0x0,
	protocolError: 0x1,
	internalError: 0x2,
	flowControlError: 0x3,
	settingsTimeout: 0x4,
	streamClosed: 0x5,
	frameSizeError: 0x6,
	refusedStream: 0x7,
	cancel: 0x8,
	compressionError: 0x9,
	connectError: 0xa,
	enhanceYourCalm: 0xb,
	inadequateSecurity: 0xc,
	http11Required: 0xd,
} as const;

/**
 * Ends the connection: thrown while input is processed, and sent as GOAWAY with this code.
 *
 * The error of a single stream is not thrown: RST_STREAM is sent where it is found.
 */
export class ConnectionError extends Error {
	override readonly name = "ConnectionError";
	readonly code: number;

	constructor(code: number, message: string) {
		super(message);
		this.code = code;
	}
}
