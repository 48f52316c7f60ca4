import { inspect, isDeepStrictEqual } from "node:util";
import { create, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import * as generated from "@plinth/proto";
import { ReadRequestSchema, ResourceSchema, WriteRequestSchema } from "@plinth/proto";
import {
	arbitraryMessage,
	clonersUnderTest,
	tortureCloners,
} from "@plinth/protoc-gen-clone/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileCompleteDecoder, compileDecoder } from "./compile-decoder.ts";

const schemas: readonly DescMessage[] = [
	...[...clonersUnderTest(generated, generated), ...tortureCloners].map(({ schema }) => schema),
	StructSchema,
];

/** Without unknown fields, which are left to `fromBinary`. */
function known(schema: DescMessage, message: Message): Message {
	return fromBinary(schema, toBinary(schema, message), { readUnknownFields: false });
}

/** Bytes with a few changes: other bytes, removed and repeated parts. */
function arbitraryBytes(schema: DescMessage): fc.Arbitrary<Uint8Array> {
	const change = fc.record({
		kind: fc.constantFrom("set", "remove", "repeat"),
		at: fc.nat(),
		length: fc.integer({ min: 1, max: 12 }),
		byte: fc.integer({ min: 0, max: 255 }),
	});
	return fc
		.tuple(arbitraryMessage(schema), fc.boolean(), fc.array(change, { maxLength: 3 }))
		.map(([message, isKnown, changes]) => {
			let bytes = [...toBinary(schema, isKnown ? known(schema, message) : message)];
			for (const { kind, at, length, byte } of changes) {
				const start = at % (bytes.length + 1);
				const part = bytes.slice(start, start + length);
				const rest = bytes.slice(start + (kind === "set" ? 1 : length));
				const middle = kind === "set" ? [byte] : kind === "repeat" ? [...part, ...part] : [];
				bytes = [...bytes.slice(0, start), ...middle, ...rest];
			}
			return Uint8Array.from(bytes);
		});
}

describe("a compiled decoder", () => {
	it.each(schemas.map((schema) => [schema.typeName, schema] as const))(
		"returns what fromBinary does, or leaves the bytes to it, for %s",
		(_typeName, schema) => {
			const decode = compileDecoder(schema, { copiesBytes: false });
			fc.assert(
				fc.property(arbitraryBytes(schema), (bytes) => {
					const decoded = decode(bytes);
					if (decoded !== undefined) {
						const expected = fromBinary(schema, bytes);
						// Not `toStrictEqual`, which reads `constructor`, a possible key of maps.
						expect(isDeepStrictEqual(decoded, expected), inspect({ decoded, expected })).toBe(true);
						expect(Object.keys(decoded).sort()).toEqual(Object.keys(expected).sort());
					}
				}),
				{ numRuns: 60 },
			);
		},
	);

	it("covers the requests of the resource service", () => {
		const decode = compileDecoder(WriteRequestSchema, { copiesBytes: true });
		const names = { type: { group: "g", groupVersion: "v1", kind: "K" }, tenancy: {}, name: "ü" };
		const request = create(WriteRequestSchema, {
			resource: {
				id: { ...names, uid: "u" },
				owner: names,
				ownerReferences: [names, { ...names, region: "r" }],
				version: "7",
				metadata: { a: "b", "": "", c: "" },
				status: {
					s: {
						observedGeneration: "o",
						conditions: [{ state: 1, message: "x".repeat(100), resource: names }],
						updatedAt: { seconds: 1_795_391_363n, nanos: 999_999_999 },
					},
				},
				data: { typeUrl: "type.googleapis.com/a.B", value: Uint8Array.of(1, 2, 255) },
			},
			createOnly: true,
		});
		expect(decode(toBinary(WriteRequestSchema, request))).toStrictEqual(request);
	});

	it("reads strings of any length and script, one after the other", () => {
		const decode = compileDecoder(ResourceSchema, { copiesBytes: true });
		fc.assert(
			fc.property(
				fc.array(fc.string({ unit: "binary", maxLength: 60 }), { maxLength: 20 }),
				fc.integer({ min: 0, max: 40_000 }),
				(texts, repeats) => {
					for (const text of [...texts, ...texts, "x".repeat(repeats)]) {
						const resource = create(ResourceSchema, { version: text });
						const bytes = toBinary(ResourceSchema, resource);
						expect(decode(bytes)).toStrictEqual(fromBinary(ResourceSchema, bytes));
					}
				},
			),
			{ numRuns: 30 },
		);
	});

	it("tells strings apart that differ in one character", () => {
		const decode = compileDecoder(ResourceSchema, { copiesBytes: true });
		for (const length of [1, 2, 7, 39, 40, 41]) {
			for (let at = 0; at < length; at++) {
				for (const character of "ab\u007f\0é") {
					const version = "a".repeat(at) + character + "a".repeat(length - at - 1);
					const resource = create(ResourceSchema, { version });
					expect(decode(toBinary(ResourceSchema, resource))).toStrictEqual(resource);
				}
			}
		}
	});

	it("leaves messages that are nested deeply to fromBinary", () => {
		const decode = compileDecoder(ValueSchema, { copiesBytes: true });
		let value = create(ValueSchema, { kind: { case: "boolValue", value: true } });
		for (let depth = 0; depth < 60; depth++) {
			value = create(ValueSchema, { kind: { case: "listValue", value: { values: [value] } } });
		}
		expect(decode(toBinary(ValueSchema, value))).toBeUndefined();
	});

	it("decodes the next message after malformed bytes", () => {
		const decode = compileDecoder(ReadRequestSchema, { copiesBytes: true });
		const request = create(ReadRequestSchema, { id: { name: "a" } });
		const bytes = toBinary(ReadRequestSchema, request);
		expect(decode(bytes.subarray(0, -1))).toBeUndefined();
		expect(decode(bytes)).toStrictEqual(request);
	});

	it("shares no memory with the bytes", () => {
		const data = { value: Uint8Array.of(1, 2, 3) };
		const bytes = toBinary(ResourceSchema, create(ResourceSchema, { data }));
		for (const each of [bytes, Buffer.from(bytes)]) {
			const decoded = compileDecoder(ResourceSchema, { copiesBytes: true })(each);
			each.fill(0);
			expect(decoded).toStrictEqual(create(ResourceSchema, { data }));
		}
	});

	it("has views of the bytes if it does not copy them", () => {
		const data = { value: Uint8Array.of(1, 2, 3) };
		const bytes = toBinary(ResourceSchema, create(ResourceSchema, { data }));
		const decoded = compileDecoder(ResourceSchema, { copiesBytes: false })(bytes);
		bytes.fill(0);
		data.value.fill(0);
		expect(decoded).toStrictEqual(create(ResourceSchema, { data }));
	});

	it("is not generated for types with fields that are not covered, if they must be", () => {
		const options = { copiesBytes: true };
		expect(compileCompleteDecoder(ResourceSchema, options)).toBeDefined();
		expect(compileCompleteDecoder(ValueSchema, options)).toBeUndefined();
	});
});
