import { frameType } from "./frames/frame.ts";
import type { Fields } from "./http2.ts";

/** A frame as a test sends or receives it. */
export interface Frame {
	readonly type: number;
	readonly flags: number;
	readonly id: number;
	readonly payload: Buffer;
}

/** The bytes of a frame. `length` is what its header says, if that is not the payload's. */
export function frame(
	type: number,
	flags: number,
	id: number,
	payload: Uint8Array = Buffer.alloc(0),
	length = payload.length,
): Buffer {
	const header = Buffer.alloc(9);
	header.writeUIntBE(length, 0, 3);
	header[3] = type;
	header[4] = flags;
	header.writeUInt32BE(id, 5);
	return Buffer.concat([header, payload]);
}

/** Cuts bytes into frames; returns what is left. */
export function parseFrames(bytes: Buffer): { readonly frames: readonly Frame[]; rest: Buffer } {
	const frames: Frame[] = [];
	let position = 0;
	while (bytes.length - position >= 9) {
		const end = position + 9 + bytes.readUIntBE(position, 3);
		if (end > bytes.length) {
			break;
		}
		frames.push({
			type: bytes.readUInt8(position + 3),
			flags: bytes.readUInt8(position + 4),
			id: bytes.readUInt32BE(position + 5),
			payload: bytes.subarray(position + 9, end),
		});
		position = end;
	}
	return { frames, rest: bytes.subarray(position) };
}

export function uint32(...values: readonly number[]): Buffer {
	const bytes = Buffer.alloc(values.length * 4);
	for (const [index, value] of values.entries()) {
		bytes.writeUInt32BE(value, index * 4);
	}
	return bytes;
}

export function settingsFrame(...values: readonly (readonly [number, number])[]): Buffer {
	const payload = Buffer.alloc(values.length * 6);
	for (const [index, [identifier, value]] of values.entries()) {
		payload.writeUInt16BE(identifier, index * 6);
		payload.writeUInt32BE(value, index * 6 + 2);
	}
	return frame(frameType.settings, 0, 0, payload);
}

/** A header block of literals that are not indexed and not Huffman-coded. */
export function literals(...fields: Fields): Buffer {
	const parts: Buffer[] = [];
	for (let index = 0; index < fields.length; index += 2) {
		parts.push(Buffer.from([0]), text(fields[index] ?? ""), text(fields[index + 1] ?? ""));
	}
	return Buffer.concat(parts);
}

function text(value: string): Buffer {
	const bytes = Buffer.from(value, "latin1");
	const length = [Math.min(bytes.length, 127)];
	for (let rest = bytes.length - 127; rest >= 0; rest = rest >= 128 ? rest >>> 7 : -1) {
		length.push(rest >= 128 ? 128 | (rest & 127) : rest);
	}
	return Buffer.concat([Buffer.from(length), bytes]);
}

/** The pseudo-header fields of a usual request. */
export const requestFields: Fields = [
	":method",
	"POST",
	":scheme",
	"http",
	":path",
	"/echo",
	":authority",
	"localhost",
];
