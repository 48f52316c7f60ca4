/** The types of RFC 9113, section 6. */
export const frameType = {
	data: 0x0,
	headers: 0x1,
	priority: 0x2,
	rstStream: 0x3,
	settings: 0x4,
	pushPromise: 0x5,
	ping: 0x6,
	goaway: 0x7,
	windowUpdate: 0x8,
	continuation: 0x9,
} as const;

/** The flags of RFC 9113. END_STREAM and ACK share a bit: they belong to different types. */
export const flag = {
	endStream: 0x1,
	ack: 0x1,
	endHeaders: 0x4,
	padded: 0x8,
	priority: 0x20,
} as const;

/** The parameters of RFC 9113, section 6.5.2. */
export const setting = {
	headerTableSize: 0x1,
	enablePush: 0x2,
	maxConcurrentStreams: 0x3,
	initialWindowSize: 0x4,
	maxFrameSize: 0x5,
	maxHeaderListSize: 0x6,
	noRfc7540Priorities: 0x9,
} as const;

/** The bytes before a frame's payload. */
export const frameHeaderBytes = 9;

/** The window that every stream and connection begins with, in bytes. */
export const initialWindow = 65_535;

/** The largest window, and the largest stream identifier. */
export const maxInt31 = 2 ** 31 - 1;

/** The largest payload that every peer accepts, in bytes. */
export const initialMaxFrameBytes = 16_384;

/** The largest payload that a peer can declare to accept, in bytes. */
export const largestMaxFrameBytes = 2 ** 24 - 1;

/** The bytes that a client sends first. */
export const clientPreface: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
