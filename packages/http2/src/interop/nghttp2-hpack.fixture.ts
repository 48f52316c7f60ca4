import { strict as assert } from "node:assert";
import http2 from "node:http2";
import { duplexPair } from "node:stream";
import { clientPreface, flag, frameType } from "../frames/frame.ts";
import { frame, parseFrames, requestFields, settingsFrame } from "../frames.fixture.ts";
import { HpackDecoder } from "../hpack/decoder.ts";
import { HpackEncoder } from "../hpack/encoder.ts";
import { HpackError } from "../hpack/hpack-error.ts";
import { encodeHuffman, huffmanLength } from "../hpack/huffman.ts";
import type { Fields } from "../http2.ts";
import { problemOfField } from "../message/fields.ts";
import { Draw } from "../properties/draw.fixture.ts";
import { settle } from "../raw-client.fixture.ts";

/** What became of header blocks of one connection: the fields of each, until one is no HPACK. */
interface Outcome {
	readonly decoded: readonly Fields[];
	readonly isCorrupt: boolean;
}

/** Lets nghttp2 decode the blocks: those of requests to a server of node:http2. */
async function decodeByNode(blocks: readonly Buffer[]): Promise<Outcome> {
	const [client, socket] = duplexPair();
	const session = http2.performServerHandshake(socket, { maxHeaderListPairs: 1000 });
	const decoded: Fields[] = [];
	session.on("error", () => {});
	session.on("stream", (stream, _headers, _flags, rawHeaders) => {
		decoded.push(rawHeaders);
		stream.on("error", () => {});
		if (!stream.destroyed) {
			stream.respond({ ":status": 204 }, { endStream: true });
		}
	});
	let received: Buffer = Buffer.alloc(0);
	client.on("data", (chunk: Buffer) => {
		received = Buffer.concat([received, chunk]);
	});
	client.on("error", () => {});
	const ended = flag.endHeaders | flag.endStream;
	const requests = blocks.map((block, index) =>
		frame(frameType.headers, ended, 1 + index * 2, block),
	);
	client.write(Buffer.concat([clientPreface, settingsFrame(), ...requests]));
	await settle();
	const isCorrupt = parseFrames(received).frames.some(
		({ type, payload }) => type === frameType.goaway && payload.readUInt32BE(4) === 9,
	);
	session.destroy();
	client.destroy();
	return { decoded, isCorrupt };
}

function decodeHere(blocks: readonly Buffer[]): Outcome {
	const decoder = new HpackDecoder();
	const decoded: Fields[] = [];
	try {
		for (const block of blocks) {
			decoded.push(decoder.decode(block, 0, block.length, 1e9).fields);
		}
	} catch (error) {
		assert.ok(error instanceof HpackError, String(error));
		return { decoded, isCorrupt: true };
	}
	return { decoded, isCorrupt: false };
}

const names = ["x-a", "x-b", "accept", "cookie", "content-type", "user-agent"];

/** A field in one of the forms that RFC 7541 allows: any index, any kind of literal, Huffman-coded or not. */
function randomField(draw: Draw): Buffer {
	const value = Buffer.from(
		Array.from({ length: draw.size(300) }, () => draw.pick([..."0aceiostXYZ~\\|!"]).charCodeAt(0)),
	).toString("latin1");
	const pattern = draw.pick([0x00, 0x10, 0x40]);
	return Buffer.concat([Buffer.from([pattern]), text(draw, draw.pick(names)), text(draw, value)]);
}

function text(draw: Draw, value: string): Buffer {
	const isCoded = draw.chance(0.5);
	const bytes = Buffer.alloc(isCoded ? huffmanLength(value) : value.length);
	if (isCoded) {
		encodeHuffman(value, bytes, 0);
	} else {
		bytes.write(value, "latin1");
	}
	const first = isCoded ? 0x80 : 0;
	const rest = bytes.length - 127;
	const length =
		rest < 0
			? [first | bytes.length]
			: rest < 128
				? [first | 127, rest]
				: [first | 127, 0x80 | (rest & 127), rest >> 7];
	return Buffer.concat([Buffer.from(length), bytes]);
}

/** A block of a valid request; its indexes may not exist. */
function randomBlock(draw: Draw, encoder: HpackEncoder): Buffer {
	const parts: Buffer[] = [encoder.encode(0, requestFields)].map(
		(part): Buffer => Buffer.from(part),
	);
	for (let count = draw.below(5); count > 0; count--) {
		parts.push(randomField(draw));
	}
	if (draw.chance(0.4)) {
		parts.push(Buffer.from([0x80 | (draw.chance(0.7) ? 62 + draw.below(8) : 1 + draw.below(126))]));
	}
	if (draw.chance(0.1)) {
		parts.unshift(
			draw.pick([Buffer.from([0x20]), Buffer.from([0x3f, 0x61]), Buffer.from([0x3f, 0xe1, 0x1f])]),
		);
	}
	return Buffer.concat(parts);
}

/** Changes a byte or two, or cuts the block. */
function mutateBlock(draw: Draw, block: Buffer): Buffer {
	const bytes = Buffer.from(block);
	for (let count = 1 + draw.below(2); count > 0; count--) {
		bytes[draw.below(bytes.length)] = draw.below(256);
	}
	return draw.chance(0.3) ? bytes.subarray(0, 1 + draw.below(bytes.length)) : bytes;
}

/**
 * Decodes random blocks of one connection here and by nghttp2, which must find the same fields, and find the same
 * block to be corrupt. nghttp2 also checks requests: malformed ones are only compared by what they do to the table, and
 * fields with invalid names or values, which it drops, are dropped here too.
 */
export async function compareHpack(seed: number): Promise<void> {
	const draw = new Draw(seed);
	const encoder = new HpackEncoder();
	const blocks = Array.from({ length: 1 + draw.below(12) }, () => randomBlock(draw, encoder));
	if (draw.chance(0.5)) {
		const index = draw.below(blocks.length);
		blocks[index] = mutateBlock(draw, blocks[index] ?? Buffer.alloc(1));
	}
	const here = decodeHere(blocks);
	const node = await decodeByNode(blocks);
	assert.equal(here.isCorrupt, node.isCorrupt, "only one decoder refuses a block");
	const own = here.decoded.map((fields) => JSON.stringify(valid(fields)));
	for (const fields of node.decoded) {
		assert.ok(own.includes(JSON.stringify(fields)), `only nghttp2 decodes ${fields}`);
	}
}

function valid(fields: Fields): Fields {
	const kept: string[] = [];
	for (let index = 0; index < fields.length; index += 2) {
		const [name = "", value = ""] = fields.slice(index, index + 2);
		if (name.startsWith(":") || problemOfField(name, value) === undefined) {
			kept.push(name, value);
		}
	}
	return kept;
}
