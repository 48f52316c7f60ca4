import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
	EmptySchema,
	FieldMaskSchema,
	FileDescriptorSetSchema,
	StructSchema,
	ValueSchema,
} from "@bufbuild/protobuf/wkt";
import { ResourceSchema } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { decodedSize } from "./decoded-size.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

const count = 50_000;
const names = Array.from({ length: count }, (_, i) => `name-${i}`);
const times = <T>(make: () => T) => Array.from({ length: count }, make);

const owners = create(ResourceSchema, { ownerReferences: times(() => ({})) });
const files = create(FileDescriptorSetSchema, { file: times(() => ({})) });
const paths = create(FieldMaskSchema, { paths: names });
const map = create(ResourceSchema, {
	metadata: Object.fromEntries(names.map((name) => [name, name])),
});
const struct = create(StructSchema);
for (const name of names) {
	struct.fields[name] = create(ValueSchema, { kind: { case: "numberValue", value: 0.5 } });
}
const maps = create(ResourceSchema, {
	status: { all: { conditions: names.map((type) => ({ type, resource: { name: type } })) } },
});

const shapes: readonly [string, DescMessage, Uint8Array][] = [
	["empty messages", ResourceSchema, toBinary(ResourceSchema, owners)],
	["empty messages with lists", FileDescriptorSetSchema, toBinary(FileDescriptorSetSchema, files)],
	["messages in messages", ResourceSchema, toBinary(ResourceSchema, maps)],
	["strings", FieldMaskSchema, toBinary(FieldMaskSchema, paths)],
	["a map of strings", ResourceSchema, toBinary(ResourceSchema, map)],
	["a map of choices", StructSchema, toBinary(StructSchema, struct)],
	["unknown fields", EmptySchema, toBinary(ResourceSchema, owners)],
];

describe("decodedSize", () => {
	it.each(shapes)("estimates the heap size of %s", (_shape, schema, bytes) => {
		fromBinary(schema, bytes);
		collectGarbage();
		const before = process.memoryUsage().heapUsed;
		const decoded = fromBinary(schema, bytes);
		collectGarbage();
		const heapBytes = process.memoryUsage().heapUsed - before;
		const ratio = decodedSize(decoded) / heapBytes;
		expect(ratio).toBeGreaterThan(0.8);
		expect(ratio).toBeLessThan(2);
	});
});
