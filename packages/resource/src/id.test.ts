import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Namespace, Partition, Tombstone } from "./builtin-types.ts";
import { displayName, idOf, nameKey, referenceTo, sameName } from "./id.ts";

describe("idOf", () => {
	it("fills in the units that the scope has, and no others", () => {
		expect(idOf(Tombstone, "x").tenancy).toMatchObject({
			partition: "default",
			namespace: "default",
		});
		expect(idOf(Namespace, "x", { partition: "p", namespace: "n" }).tenancy).toMatchObject({
			partition: "p",
			namespace: "",
		});
		expect(idOf(Partition, "x", { partition: "p" }).tenancy).toMatchObject({
			partition: "",
			namespace: "",
		});
	});
});

describe("names of resources", () => {
	const unit = fc.constantFrom("", "a", "b", "ab");
	const name = fc.record({
		type: fc.constantFrom(Tombstone.type, Namespace.type, Partition.type),
		tenancy: fc.record({ partition: unit, namespace: unit }),
		name: fc.constantFrom("a", "b", "ab"),
	});

	it("have equal keys if and only if they are equal", () => {
		fc.assert(
			fc.property(name, name, (a, b) => {
				expect(nameKey(a) === nameKey(b)).toBe(sameName(a, b));
			}),
		);
	});

	it("do not depend on group version and uid", () => {
		const id = idOf(Namespace, "x");
		const other = {
			...id,
			uid: "u",
			type: { group: Namespace.type.group, kind: Namespace.type.kind, groupVersion: "v9" },
		};
		expect(nameKey(other)).toBe(nameKey(id));
		expect(sameName(other, id)).toBe(true);
		expect(sameName(undefined, id)).toBe(false);
	});

	it("are shown with their type and tenancy", () => {
		expect(displayName(idOf(Namespace, "x"))).toBe("tenancy.v1.Namespace default/x");
		expect(displayName({ name: "x" })).toBe("resource x");
	});

	it("can be referenced", () => {
		const reference = referenceTo(idOf(Namespace, "x"), "port");
		expect(sameName(reference, idOf(Namespace, "x"))).toBe(true);
		expect(reference.section).toBe("port");
	});
});
