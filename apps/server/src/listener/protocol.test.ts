import { Buffer } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { protocolOf } from "./protocol.ts";

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

describe("protocolOf", () => {
	it("waits while all bytes could be the HTTP/2 preface", () => {
		for (let length = 0; length < preface.length; length += 1) {
			expect(protocolOf(preface.subarray(0, length))).toBeUndefined();
		}
	});

	it("detects HTTP/2 by the whole preface, whatever follows", () => {
		fc.assert(
			fc.property(fc.uint8Array(), (rest) => {
				expect(protocolOf(Buffer.concat([preface, rest]))).toBe("http2");
			}),
		);
	});

	it("treats anything else as HTTP/1.1, from the first byte that differs", () => {
		fc.assert(
			fc.property(
				fc.nat(preface.length - 1),
				fc.integer({ min: 1, max: 255 }),
				fc.uint8Array(),
				(at, change, rest) => {
					const head = Buffer.from(preface.subarray(0, at + 1));
					head.writeUInt8(head.readUInt8(at) ^ change, at);
					expect(protocolOf(Buffer.concat([head, rest]))).toBe("http1");
				},
			),
		);
	});
});
