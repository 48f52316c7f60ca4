import { create, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import * as generated from "@plinth/proto";
import { ResourceSchema, WatchEventSchema } from "@plinth/proto";
import {
	arbitraryMessage,
	clonersUnderTest,
	tortureCloners,
} from "@plinth/protoc-gen-clone/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileEncoder } from "./compile-encoder.ts";

const schemas: readonly DescMessage[] = [
	...clonersUnderTest(generated, generated),
	...tortureCloners,
].map(({ schema }) => schema);

/** As a codec does: what the compiled encoder does not cover is left to `toBinary`. */
function encodeWith(schema: DescMessage): (message: Message) => Buffer {
	const encode = compileEncoder(schema);
	return (message) => Buffer.from(encode(message) ?? toBinary(schema, message));
}

describe("a compiled encoder", () => {
	it.each(schemas.map((schema) => [schema.typeName, schema] as const))(
		"returns what toBinary does, for %s",
		(_typeName, schema) => {
			const encode = encodeWith(schema);
			fc.assert(
				fc.property(arbitraryMessage(schema), (message) => {
					expect(encode(message)).toEqual(Buffer.from(toBinary(schema, message)));
				}),
				{ numRuns: 30 },
			);
		},
	);

	it("writes strings of any length and script", () => {
		const encode = encodeWith(ResourceSchema);
		fc.assert(
			fc.property(
				fc.string({ unit: "binary", maxLength: 100 }),
				fc.integer({ min: 0, max: 40_000 }),
				(text, repeats) => {
					const resource = create(ResourceSchema, {
						version: text.repeat(repeats % 40),
						metadata: { [text]: "x".repeat(repeats), "": text },
					});
					expect(encode(resource)).toEqual(Buffer.from(toBinary(ResourceSchema, resource)));
				},
			),
			{ numRuns: 30 },
		);
	});

	it("covers the messages of the resource service", () => {
		const encode = compileEncoder(WatchEventSchema);
		fc.assert(
			fc.property(arbitraryMessage(ResourceSchema), (resource) => {
				const known = fromBinary(ResourceSchema, toBinary(ResourceSchema, resource), {
					readUnknownFields: false,
				});
				const event = create(WatchEventSchema, {
					event: { case: "upsert", value: { resource: known } },
					version: "7",
				});
				const expected = Uint8Array.of(0, 0, 0, 0, 0, ...toBinary(WatchEventSchema, event));
				expect(encode(event, { zeros: 5, isLasting: true })).toEqual(expected);
				expect(encode(event, { zeros: 5 })).toEqual(Buffer.from(expected));
			}),
			{ numRuns: 50 },
		);
	});

	it("leaves values of a wrong type to toBinary, and encodes the next message", () => {
		const encode = encodeWith(ResourceSchema);
		const wrong = create(ResourceSchema, { version: "1", ownerReferences: [{ name: "a" }] });
		Reflect.set(wrong.ownerReferences, 0, { name: "b" });
		expect(() => encode(wrong)).toThrow(/with message undefined/);
		const right = create(ResourceSchema, { version: "2" });
		expect(encode(right)).toEqual(Buffer.from(toBinary(ResourceSchema, right)));
	});
});
