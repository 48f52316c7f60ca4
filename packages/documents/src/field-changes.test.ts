import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FieldChange, fieldChanges } from "./field-changes.ts";

/** Makes a change in a document. */
function apply(document: JsonObject, { path, before, after }: FieldChange): JsonObject {
	const changed = structuredClone(document);
	const parent = path.slice(0, -1).reduce<JsonValue | undefined>(child, changed);
	const last = path.at(-1);
	if (Array.isArray(parent) && typeof last === "number") {
		expect(before === undefined ? undefined : parent[last]).toEqual(before);
		parent.splice(last, before === undefined ? 0 : 1, ...(after === undefined ? [] : [after]));
	} else if (typeof parent === "object" && parent !== null && typeof last === "string") {
		expect(child(parent, last)).toEqual(before);
		Reflect.deleteProperty(parent, last);
		if (after !== undefined) {
			Object.defineProperty(parent, last, {
				...{ value: after, enumerable: true, configurable: true, writable: true },
			});
		}
	} else {
		throw new Error(`no such field: ${path.join(".")}`);
	}
	return changed;
}

function child(parent: JsonValue | undefined, key: string | number): JsonValue | undefined {
	return typeof parent === "object" && parent !== null
		? Object.getOwnPropertyDescriptor(parent, key)?.value
		: undefined;
}

const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
	value: fc.oneof(
		{ depthSize: "small" },
		fc.constantFrom(null, true, false, 0, 1, "", "a", "b"),
		fc.array(tie("value"), { maxLength: 5 }),
		fc.dictionary(fc.constantFrom("a", "b", "c", "__proto__"), tie("value")),
	),
}));
const document: fc.Arbitrary<JsonObject> = fc.dictionary(fc.constantFrom("x", "y", "z"), value);

describe("fieldChanges", () => {
	it("turn each version of a document into the next, and so the first into the last", () => {
		fc.assert(
			fc.property(fc.array(document, { minLength: 2, maxLength: 4 }), (versions) => {
				let current = versions[0] ?? {};
				for (const next of versions) {
					const changes = fieldChanges(current, next);
					current = changes.reduce(apply, current);
					expect(current).toEqual(next);
					expect(fieldChanges(current, next)).toEqual([]);
				}
			}),
			{ numRuns: 200 },
		);
	});

	it("finds a change within many lists at once", () => {
		const depth = 90;
		const nested = (value: JsonValue): JsonValue => {
			const lists = Array.from({ length: depth });
			return lists.reduce<JsonValue>((inner) => [inner], value);
		};
		const path = ["x", ...Array.from({ length: depth }, () => 0)];
		expect(fieldChanges({ x: nested(1) }, { x: nested(2) })).toEqual([
			{ path, before: 1, after: 2 },
		]);
	});

	it("names no element of a list that stays where it is, or moves with what was added before it", () => {
		const changes = (before: JsonValue, after: JsonValue) =>
			fieldChanges({ list: before }, { list: after });
		expect(changes(["b", "c"], ["a", "b", "c"])).toEqual([{ path: ["list", 0], after: "a" }]);
		expect(changes(["a", "b", "c", "d"], ["a", "d"])).toEqual([
			{ path: ["list", 2], before: "c" },
			{ path: ["list", 1], before: "b" },
		]);
		expect(changes([{ name: "x", is: 1 }, "b"], [{ name: "x", is: 2 }, "b"])).toEqual([
			{ path: ["list", 0, "is"], before: 1, after: 2 },
		]);
	});
});
