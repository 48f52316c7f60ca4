import { create, toBinary } from "@bufbuild/protobuf";
import { StringValueSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import type { Codec } from "./codec.ts";
import { envelope } from "./envelope.ts";
import { EnvelopeReader } from "./request-reader.ts";

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
