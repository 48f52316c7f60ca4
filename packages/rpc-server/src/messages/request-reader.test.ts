import { create, toBinary } from "@bufbuild/protobuf";
import { StringValueSchema } from "@bufbuild/protobuf/wkt";
import { reachableBytes } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import type { Codec } from "./codec.ts";
import { envelope } from "./envelope.ts";
import { EnvelopeReader, WholeBodyReader } from "./request-reader.ts";

const endFlag = 0b1000_0000;
const codec: Pick<Codec, "decode"> = {
	decode: (bytes) => create(StringValueSchema, { value: Buffer.from(bytes).toString("hex") }),
};

function readerOf(readMaxBytes: number): EnvelopeReader {
	return new EnvelopeReader({ codec, readMaxBytes, methodKind: "unary", endFlag });
}

const message = envelope(
	0,
	toBinary(StringValueSchema, create(StringValueSchema, { value: "once" })),
);

const chunkBytes = 1024 * 1024;

/** A copy of the bytes that is a part of a large chunk. */
function partOfChunk(bytes: Uint8Array): Uint8Array {
	const part = new Uint8Array(chunkBytes).subarray(9, 9 + bytes.byteLength);
	part.set(bytes);
	return part;
}

it.each([
	["envelopes", readerOf(1_000), message],
	["whole bodies", new WholeBodyReader({ codec, readMaxBytes: 1_000 }, undefined), message],
] as const)(
	"the reader of %s keeps no chunks for small parts of them",
	async (_name, reader, body) => {
		const before = reachableBytes();
		for (let at = 0; at < body.byteLength; at += 1) {
			reader.add(partOfChunk(body.subarray(at, at + 1)));
		}
		await expect.poll(() => reachableBytes() - before).toBeLessThan(chunkBytes);
		const whole = reader instanceof EnvelopeReader ? body.subarray(5) : body;
		expect(reader.finish()).toEqual(codec.decode(whole));
	},
);

describe("the reader of envelopes", () => {
	it("refuses a second message as soon as it has arrived, and stores no more", () => {
		const reader = readerOf(100);
		reader.add(message);
		expect(() => reader.add(message)).toThrow("received extra input message");
	});

	it("refuses endless envelopes that it ignores", () => {
		const reader = readerOf(100);
		reader.add(message);
		reader.add(envelope(endFlag, new Uint8Array(100)));
		expect(() => reader.add(envelope(endFlag, new Uint8Array(0)))).toThrow("larger than");
	});

	it("keeps nothing of envelopes that it ignores", async () => {
		const before = reachableBytes();
		const reader = readerOf(8 * chunkBytes);
		for (let count = 0; count < 4; count += 1) {
			reader.add(envelope(endFlag, new Uint8Array(chunkBytes)));
			reader.add(envelope(endFlag, new Uint8Array(0)));
		}
		await expect.poll(() => reachableBytes() - before).toBeLessThan(chunkBytes);
		reader.add(message);
		expect(reader.finish()).toEqual(codec.decode(message.subarray(5)));
	});

	it("accepts one message and an end, however they are split", () => {
		const bytes = Buffer.concat([message, envelope(endFlag, new Uint8Array(3))]);
		for (let size = 1; size <= bytes.byteLength; size += 1) {
			const reader = readerOf(10);
			for (let start = 0; start < bytes.byteLength; start += size) {
				reader.add(bytes.subarray(start, start + size));
			}
			expect(reader.finish()).toEqual(codec.decode(message.subarray(5)));
		}
	});
});
