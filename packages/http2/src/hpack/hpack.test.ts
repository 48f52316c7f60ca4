import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fields } from "../http2.ts";
import { HpackDecoder } from "./decoder.ts";
import { HpackEncoder } from "./encoder.ts";
import { HpackError } from "./hpack-error.ts";
import { decodeHuffman, encodeHuffman, huffmanLength } from "./huffman.ts";

const plenty = 1_000_000;

function decode(decoder: HpackDecoder, hex: string): Fields {
	const bytes = Buffer.from(hex.replaceAll(/\s/g, ""), "hex");
	return decoder.decode(bytes, 0, bytes.length, plenty).fields;
}

describe("HPACK", () => {
	it("decodes the requests of RFC 7541, C.4", () => {
		const decoder = new HpackDecoder();
		const first = [":method", "GET", ":scheme", "http", ":path", "/"];
		const authority = [":authority", "www.example.com"];
		expect(decode(decoder, "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff")).toEqual([
			...first,
			...authority,
		]);
		expect(decode(decoder, "8286 84be 5886 a8eb 1064 9cbf")).toEqual([
			...first,
			...authority,
			"cache-control",
			"no-cache",
		]);
		expect(decode(decoder, "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf")).toEqual([
			":method",
			"GET",
			":scheme",
			"https",
			":path",
			"/index.html",
			...authority,
			"custom-key",
			"custom-value",
		]);
		expect(decoder.tableSize).toBe(164);
	});

	it("decodes the responses of RFC 7541, C.6, with evictions", () => {
		const decoder = new HpackDecoder();
		decoder.setLimit(256);
		const blocks = [
			"3fe1 01 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
			"4883 640e ffc1 c0bf",
			"88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
		];
		const decoded = blocks.map((block) => decode(decoder, block));
		expect(decoded[1]).toEqual([
			":status",
			"307",
			"cache-control",
			"private",
			"date",
			"Mon, 21 Oct 2013 20:13:21 GMT",
			"location",
			"https://www.example.com",
		]);
		expect(decoded[2]?.slice(-2)).toEqual([
			"set-cookie",
			"foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
		]);
		expect(decoder.tableSize).toBe(215);
	});

	it.each([
		["an index of 0", "80"],
		["an index beyond the table", "be"],
		["a name beyond the table", "7f 00 01 61"],
		["an integer that does not end", "ff 80 80"],
		["an integer that is too large", "ff ff ff ff ff ff 01"],
		["a string beyond the block", "00 05 61"],
		["no string", "00"],
		["a size update after a field", "82 20"],
		["a size update above the limit", "3f e2 1f"],
		["the code that ends a string", "00 84 ff ff ff ff 01 61"],
		["padding of more than seven bits", "00 82 1f ff 01 61"],
		["padding of zeros", "00 81 18 01 61"],
	])("refuses %s", (_, hex) => {
		expect(() => decode(new HpackDecoder(), hex)).toThrow(HpackError);
	});

	it("refuses a block without the size update that a lower limit demands", () => {
		const decoder = new HpackDecoder();
		decoder.setLimit(100);
		expect(() => decode(decoder, "82")).toThrow("must begin with a table size update");
		expect(decode(decoder, "3f 45 82")).toEqual([":method", "GET"]);
		expect(decode(decoder, "82")).toEqual([":method", "GET"]);
	});

	it("drops fields beyond the limit, and keeps the table", () => {
		const decoder = new HpackDecoder();
		const block = Buffer.from("400161016240016301648282", "hex");
		const { fields, listBytes } = decoder.decode(block, 0, block.length, 40);
		expect(fields).toEqual(["a", "b"]);
		expect(listBytes).toBe(34 + 34 + 42 + 42);
		expect(decode(decoder, "bebf")).toEqual(["c", "d", "a", "b"]);
	});

	it("Huffman-codes all strings", () => {
		fc.assert(
			fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
				const text = Buffer.from(bytes).toString("latin1");
				const target = Buffer.alloc(huffmanLength(text));
				expect(encodeHuffman(text, target, 0)).toBe(target.length);
				expect(decodeHuffman(target, 0, target.length)).toBe(text);
			}),
		);
	});

	it("decodes what it has encoded, with changes of the table's size", () => {
		const name = fc.constantFrom("a", "content-type", "grpc-status", "set-cookie", "x".repeat(300));
		const value = fc.oneof(
			fc.constantFrom("", "0", "application/grpc", "y".repeat(900)),
			fc.string({ unit: "binary-ascii", maxLength: 20 }),
		);
		const step = fc.oneof(
			fc.record({
				status: fc.constantFrom(0, 200, 404, 503),
				fields: fc.array(fc.tuple(name, value), { maxLength: 5 }),
			}),
			fc.nat(8192),
		);
		fc.assert(
			fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
				const encoder = new HpackEncoder();
				const decoder = new HpackDecoder(8192);
				for (const each of steps) {
					if (typeof each === "number") {
						encoder.setPeerLimit(each);
						decoder.setLimit(each);
						continue;
					}
					const fields = each.fields.flat();
					const block = encoder.encode(each.status, fields);
					const status = each.status === 0 ? [] : [":status", String(each.status)];
					expect(decoder.decode(block, 0, block.length, plenty).fields).toEqual([
						...status,
						...fields,
					]);
					expect(decoder.tableSize).toBe(encoder.tableSize);
				}
			}),
		);
	});

	it("encodes fields that repeat as indexes, and does not encode such blocks again", () => {
		const encoder = new HpackEncoder();
		const fields = ["content-type", "application/grpc"];
		const lengths = [1, 2, 3, 4].map(() => encoder.encode(200, fields).length);
		expect(lengths.slice(2)).toEqual([2, 2]);
		expect(encoder.encode(200, fields)).toBe(encoder.encode(200, [...fields]));
		expect(encoder.encode(0, ["set-cookie", "a=b"])[0]).toBe(0x1f);
	});
});
