import { create, fromBinary, getExtension, setExtension, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { cloneLegacy } from "../testdata/src/gen/torture/legacy/legacy_clone.ts";
import * as legacy from "../testdata/src/gen/torture/legacy/legacy_pb.ts";
import { cloneExplicit } from "../testdata/src/gen/torture/v1/editions_clone.ts";
import * as editions from "../testdata/src/gen/torture/v1/editions_pb.ts";
import {
	cloneLeaf,
	cloneMaps,
	cloneOptionals,
	cloneTree,
	cloneWellKnown,
} from "../testdata/src/gen/torture/v1/torture_clone.ts";
import * as torture from "../testdata/src/gen/torture/v1/torture_pb.ts";
import { haveSameHiddenClass } from "./hidden-class.fixture.ts";
import { assertClones } from "./testing/assert-clones.ts";
import { sharedObject } from "./testing/object-graph.ts";
import { tortureCloners } from "./testing/torture-cloners.ts";

describe("a generated cloner", () => {
	// Few runs each: the deep tests run many.
	it.each(tortureCloners.map((cloner) => [cloner.schema.typeName, cloner] as const))(
		"clones random messages of %s",
		(_typeName, cloner) => assertClones(cloner, { runs: 30, seed: 1 }),
	);

	it("keeps unset fields unset if the prototype has a default", () => {
		const clone = cloneExplicit(create(editions.ExplicitSchema));
		expect(Object.hasOwn(clone, "blobWithDefault")).toBe(false);
		expect(clone.blobWithDefault).toEqual(new TextEncoder().encode("abc"));
		expect(clone.number).toBe(-5n);
	});

	it("keeps a set zero value set", () => {
		const explicit = cloneExplicit(create(editions.ExplicitSchema, { number: 0n, text: "" }));
		expect(Object.keys(explicit)).toEqual(expect.arrayContaining(["number", "text"]));
		const optionals = cloneOptionals(create(torture.OptionalsSchema, { fInt32: 0 }));
		expect(Object.keys(optionals)).toEqual(["$typeName", "fInt32"]);
	});

	it("does not set a bytes field that was reset to undefined", () => {
		const original = create(editions.ExplicitSchema, { blob: new Uint8Array([1]) });
		Reflect.set(original, "blob", undefined);
		expect(toBinary(editions.ExplicitSchema, cloneExplicit(original))).toEqual(new Uint8Array());
	});

	it("keeps `__proto__` as a key of maps and of JSON objects", () => {
		const maps = create(torture.MapsSchema);
		const leaf = { value: create(torture.LeafSchema), enumerable: true };
		Object.defineProperty(maps.byString, "__proto__", leaf);
		Object.defineProperty(maps.stringByString, "__proto__", { value: "text", enumerable: true });
		const clone = cloneMaps(maps);
		expect(Object.keys(clone.byString)).toEqual(["__proto__"]);
		expect(Object.getPrototypeOf(clone.byString)).toBe(Object.prototype);
		expect(Object.entries(clone.stringByString)).toEqual([["__proto__", "text"]]);
		expect(sharedObject(maps, clone)).toBeUndefined();

		const struct = JSON.parse('{"__proto__": {"deep": [{"__proto__": 1}]}}');
		const json = cloneWellKnown(create(torture.WellKnownSchema, { struct })).struct;
		expect(JSON.stringify(json)).toBe(JSON.stringify(struct));
		expect(sharedObject(struct, json)).toBeUndefined();
	});

	it("copies the bytes of a Buffer", () => {
		const original = create(torture.LeafSchema, { blob: Buffer.from("abc") });
		const clone = cloneLeaf(original);
		original.blob[0] = 0;
		expect(Buffer.from(clone.blob).toString()).toBe("abc");
		expect(clone.blob.buffer.byteLength).toBe(3);
	});

	it("clones extensions", () => {
		const original = create(legacy.LegacySchema, { text: "a", blob: new Uint8Array() });
		const child = create(legacy.LegacySchema, { text: "b", blob: new Uint8Array([2]) });
		setExtension(original, legacy.blob_extension, new Uint8Array([1]));
		setExtension(original, legacy.message_extension, [child]);
		const clone = cloneLegacy(original);
		expect(getExtension(clone, legacy.blob_extension)).toEqual(new Uint8Array([1]));
		expect(getExtension(clone, legacy.message_extension)).toEqual([child]);
		expect(sharedObject(original, clone)).toBeUndefined();
	});

	it("gives a clone the hidden class of a created message with the same fields", () => {
		const tree = create(torture.TreeSchema, { name: "a", right: { name: "b" }, children: [{}] });
		const decoded = fromBinary(torture.TreeSchema, toBinary(torture.TreeSchema, tree));
		expect(haveSameHiddenClass(tree, cloneTree(tree))).toBe(true);
		expect(haveSameHiddenClass(tree, cloneTree(decoded))).toBe(true);
		const explicit = create(editions.ExplicitSchema, { number: 1n, child: {} });
		expect(haveSameHiddenClass(explicit, cloneExplicit(explicit))).toBe(true);
		expect(haveSameHiddenClass(tree, explicit)).toBe(false);
	});

	it("does not copy properties that are not fields of the message", () => {
		const original = Object.assign(create(torture.LeafSchema), { note: {} });
		expect(Object.keys(cloneLeaf(original))).toEqual(["$typeName", "text", "blob"]);
	});
});
