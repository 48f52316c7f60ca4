/** The bytes before a message: a byte of flags, and four bytes of length. */
export const envelopeHeadBytes = 5;

/** Puts a message, or the end of a stream, into an envelope: a byte of flags, four bytes of length, the data. */
export function envelope(flags: number, data: Uint8Array): Uint8Array {
	const bytes = Buffer.allocUnsafe(envelopeHeadBytes + data.byteLength);
	fillHead(bytes, flags);
	bytes.set(data, envelopeHeadBytes);
	return bytes;
}

/** Writes the head of an envelope that has its data. */
export function fillHead(envelope: Uint8Array, flags: number): void {
	const size = envelope.byteLength - envelopeHeadBytes;
	envelope[0] = flags;
	envelope[1] = size >>> 24;
	envelope[2] = size >>> 16;
	envelope[3] = size >>> 8;
	envelope[4] = size;
}
