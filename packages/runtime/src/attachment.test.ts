import { describe, expect, it } from "vitest";
import { attachment } from "./attachment.ts";

describe("attachment", () => {
	const extensible = () => ({ name: "a" });
	const frozen = () => Object.freeze({ name: "a" });

	it.each([
		["an object", extensible],
		["a frozen object", frozen],
	])("keeps a value for %s, and none for its copies", (_, create) => {
		const lengths = attachment<object, number>();
		const object = create();
		expect(lengths.get(object)).toBeUndefined();
		lengths.set(object, 1);
		lengths.set(object, 2);
		expect(lengths.get(object)).toBe(2);
		expect(lengths.get({ ...object })).toBeUndefined();
		expect(lengths.get(structuredClone(object))).toBeUndefined();
		expect(attachment<object, number>().get(object)).toBeUndefined();
	});

	it("is not visible in the object", () => {
		const object = extensible();
		attachment<object, number>().set(object, 1);
		expect(object).toStrictEqual(extensible());
		expect(Reflect.ownKeys(object)).toEqual(["name"]);
		expect(JSON.stringify(object)).toBe(JSON.stringify(extensible()));
	});

	it("keeps its value if the object is frozen afterwards", () => {
		const lengths = attachment<object, number>();
		const object = extensible();
		lengths.set(object, 1);
		Object.freeze(object);
		expect(lengths.get(object)).toBe(1);
		lengths.set(object, 2);
		expect(lengths.get(object)).toBe(2);
	});
});
