import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
	type Any,
	AnySchema,
	anyPack,
	anyUnpack,
	FileDescriptorProtoSchema,
	ListValueSchema,
} from "@bufbuild/protobuf/wkt";
import { torture } from "@plinth/protoc-gen-clone/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	assertAgrees,
	assertNotLess,
	count,
	mangled,
	notLess,
	plans,
	registry,
	schemas,
} from "./counted-messages.fixture.ts";
import type { FieldPlan, MessagePlan } from "./message-plan.ts";

const { ListsSchema, MapsSchema, ScalarsSchema, WellKnownSchema } = torture;

/** All kinds of fields, groups and proto2 among them; the deep test takes all messages. */
const mainSchemas = schemas.filter(({ name }) =>
	["Scalars", "Lists", "Maps", "Oneofs", "WellKnown", "Delimited", "Legacy"].includes(name),
);

describe("counting the fields of binary messages", () => {
	it.each(mainSchemas.map((schema) => [schema.typeName, schema] as const))(
		"agrees with the decoded message, and never counts less than is decoded from mangled bytes: %s",
		(_name, schema) => {
			assertAgrees(schema, 10);
			assertNotLess(schema, 20);
		},
	);

	it("never fails, whatever the bytes, and whatever the type", () => {
		fc.assert(
			fc.property(fc.constantFrom(...schemas), fc.uint8Array({ maxLength: 200 }), (schema, bytes) =>
				notLess(plans.of(schema), schema, bytes),
			),
			{ numRuns: 2_000 },
		);
	});

	it("finds plans that are wrong: a message taken for bytes, a width, a wire type, a merge", () => {
		const wrong = (change: (plan: FieldPlan) => FieldPlan): MessagePlan => {
			const plan = plans.of(ListsSchema);
			return { ...plan, fields: new Map([...plan.fields].map(([no, each]) => [no, change(each)])) };
		};
		const changes: ((plan: FieldPlan) => FieldPlan)[] = [
			(plan) => (plan.layout === 4 ? { ...plan, layout: 3, child: undefined } : plan),
			(plan) => (plan.layout === 2 ? { ...plan, layout: 1 } : plan),
			(plan) => ({ ...plan, isPackable: false }),
		];
		for (const change of changes) {
			const result = fc.check(
				fc.property(mangled(ListsSchema), (bytes) => notLess(wrong(change), ListsSchema, bytes)),
				// This seed finds a wrong width within 20 runs; others need up to some thousands.
				{ seed: 6, numRuns: 20_000, endOnFailure: true },
			);
			expect(result.failed).toBe(true);
		}
	});

	it("stops past the limit", () => {
		const bytes = new Uint8Array(4_000_000).fill(0);
		for (let at = 0; at < bytes.length; at += 2) {
			bytes[at] = 0x0a;
		}
		expect(count(ListValueSchema, bytes)).toBe(2_000_000);
		expect(count(ListValueSchema, bytes, 250_000)).toBe(250_001);
	});

	it("reads a known field by its descriptor, whatever the wire type of its tag", () => {
		// f_string with the tag of a varint: to the decoder a string of 0x7f bytes, not a number.
		const writer = new BinaryWriter().tag(14, WireType.Varint).string("x".repeat(0x7f));
		const bytes = writer.finish();
		expect(fromBinary(ScalarsSchema, bytes).fString).toBe("x".repeat(0x7f));
		expect(count(ScalarsSchema, bytes)).toBe(1);
	});

	it("lets the last element of a packed field run past its end, as the decoder does", () => {
		// A packed int64 of one byte that continues, then what a scan by length would skip as a string.
		const leaves = new Uint8Array(3 * 40);
		for (let at = 0; at < leaves.length; at += 3) {
			leaves.set([0x92, 0x01, 0x00], at);
		}
		const bytes = Uint8Array.from([0x22, 0x01, 0xff, 0x72, ...leaves]);
		expect(fromBinary(ListsSchema, bytes).fLeaf).toHaveLength(40);
		expect(count(ListsSchema, bytes)).toBe(41);
	});

	it("lets a message run past the end of the one around it, as the decoder does", () => {
		const inner = Uint8Array.from(Array.from({ length: 30 }, () => [0x92, 0x01, 0x00]).flat());
		const bytes = Uint8Array.from([0x9a, 0x01, 0x02, 0x9a, 0x01, inner.length, ...inner]);
		expect(fromBinary(ListsSchema, bytes).fLists[0]?.fLists[0]?.fLeaf).toHaveLength(30);
		expect(count(ListsSchema, bytes)).toBe(32);
	});

	it("counts unknown fields one each, and the records of unknown groups", () => {
		const writer = new BinaryWriter()
			.tag(1_000, WireType.LengthDelimited)
			.bytes(new Uint8Array(500));
		writer.tag(1_001, WireType.StartGroup);
		for (let record = 0; record < 10; record += 1) {
			writer.tag(1, WireType.Varint).uint32(1);
		}
		writer.tag(1_001, WireType.EndGroup);
		expect(count(ScalarsSchema, writer.finish())).toBe(12);
	});

	it("counts what the decoder adds to a map entry without a key, a value or both", () => {
		const key = new BinaryWriter().tag(1, WireType.LengthDelimited).string("k").finish();
		const value = new BinaryWriter().tag(2, WireType.LengthDelimited).string("v").finish();
		const unknown = new BinaryWriter().tag(3, WireType.Varint).uint32(1).finish();
		const counted = (...records: Uint8Array[]) => {
			const entry = Buffer.concat(records);
			const bytes = new BinaryWriter().tag(14, WireType.LengthDelimited).bytes(entry).finish();
			expect(Object.keys(fromBinary(MapsSchema, bytes).stringByString)).toHaveLength(1);
			return count(MapsSchema, bytes);
		};
		expect([counted(), counted(key), counted(value), counted(key, value)]).toEqual([3, 3, 3, 3]);
		expect(counted(unknown, key)).toBe(4);
		expect(counted(key, value, value)).toBe(4);
	});

	it("stops at messages, groups and unknown groups that are nested too deeply", () => {
		const deep = (open: number[]) =>
			Uint8Array.from({ length: 100_000 }, (_, at) => open[at % open.length] ?? 0);
		expect(count(FileDescriptorProtoSchema, deep([0x22, 0x7f]))).toBeLessThan(60_000);
		expect(count(ScalarsSchema, deep([0xfb, 0x3e]))).toBeLessThan(200);
		let nested: Uint8Array = new Uint8Array();
		for (let level = 0; level < 2_000; level += 1) {
			nested = new BinaryWriter().tag(19, WireType.LengthDelimited).bytes(nested).finish();
		}
		expect(count(ListsSchema, nested)).toBe(100);
	});
});

describe("counting what values of Any hold", () => {
	const bomb = new Uint8Array(3_000);
	for (let at = 0; at < bomb.length; at += 3) {
		bomb.set([0x92, 0x01, 0x00], at);
	}
	const type = `type.googleapis.com/${ListsSchema.typeName}`;
	const any = (typeUrl: string, value: Uint8Array) => create(AnySchema, { typeUrl, value });
	const wellKnown = (...anys: Any[]) => {
		const writer = new BinaryWriter();
		for (const each of anys) {
			writer.tag(1, WireType.LengthDelimited).bytes(toBinary(AnySchema, each));
		}
		return writer.finish();
	};

	it("goes into known types, and not into others", () => {
		expect(count(WellKnownSchema, wellKnown(any(type, bomb)))).toBe(1_003);
		expect(count(WellKnownSchema, wellKnown(any(`${type}X`, bomb)))).toBe(3);
		expect(count(AnySchema, toBinary(AnySchema, any(type, bomb)))).toBe(1_002);
	});

	it("goes by the last type and the last value, in any order", () => {
		const bytes = new BinaryWriter()
			.tag(2, WireType.LengthDelimited)
			.bytes(bomb)
			.tag(1, WireType.LengthDelimited)
			.string("unknown")
			.tag(1, WireType.LengthDelimited)
			.string(type)
			.finish();
		expect(count(AnySchema, bytes)).toBe(1_003);
	});

	it("counts bytes where a second record gives the value of the first another type", () => {
		const bytes = wellKnown(any("unknown", bomb), any(type, new Uint8Array()));
		const merged = fromBinary(WellKnownSchema, bytes).any;
		expect(merged && anyUnpack(merged, registry)).toMatchObject({ fLeaf: { length: 1_000 } });
		expect(count(WellKnownSchema, bytes)).toBeGreaterThan(1_000);
	});

	it("goes 100,000 levels deep without recursion", () => {
		// Built from the inside, each level in front of the one before.
		const parts: Uint8Array[] = [];
		let size = 0;
		const url = new BinaryWriter()
			.tag(1, WireType.LengthDelimited)
			.string("/google.protobuf.Any")
			.finish();
		for (let level = 0; level < 100_000; level += 1) {
			const head = new BinaryWriter().tag(2, WireType.LengthDelimited).uint32(size).finish();
			const front = Buffer.concat([url, head]);
			parts.push(front);
			size += front.length;
		}
		const bytes = Buffer.concat(parts.reverse());
		expect(count(AnySchema, bytes)).toBe(200_000);
	});

	it("reads what anyPack has packed", () => {
		const packed = anyPack(ListsSchema, create(ListsSchema, { fString: ["a", "b"] }));
		expect(count(AnySchema, toBinary(AnySchema, packed))).toBe(4);
	});
});
