import { describe, expect, it } from "vitest";
import { actionOf } from "./keyboard.ts";

const plain = { ctrlKey: false, metaKey: false, altKey: false };

describe("actionOf", () => {
	it.each([
		["/", "filter"],
		["?", "help"],
		["k", undefined],
	] as const)("the key %s outside of fields does %s", (key, action) => {
		expect(actionOf({ ...plain, key }, false)).toBe(action);
	});

	it("opens the palette with Ctrl-K and Cmd-K, also in fields", () => {
		expect(actionOf({ ...plain, key: "k", ctrlKey: true }, true)).toBe("palette");
		expect(actionOf({ ...plain, key: "K", metaKey: true }, false)).toBe("palette");
		expect(actionOf({ ...plain, key: "k", ctrlKey: true, altKey: true }, false)).toBe(undefined);
	});

	it("leaves letters to fields, and other combinations to the browser", () => {
		expect(actionOf({ ...plain, key: "/" }, true)).toBe(undefined);
		expect(actionOf({ ...plain, key: "?" }, true)).toBe(undefined);
		expect(actionOf({ ...plain, key: "/", ctrlKey: true }, false)).toBe(undefined);
	});
});
