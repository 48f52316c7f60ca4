/** The length of the flags and the length of a message, before its bytes. */
export const envelopeHeadBytes = 5;

/** Puts a message, or the end of a stream, into an envelope: a byte of flags, four of length, the bytes. */
export function envelope(flags: number, data: Uint8Array): Uint8Array {
	const bytes = Buffer.allocUnsafe(envelopeHeadBytes + data.byteLength);
	bytes[0] = flags;
	bytes.writeUInt32BE(data.byteLength, 1);
	bytes.set(data, envelopeHeadBytes);
	return bytes;
}
