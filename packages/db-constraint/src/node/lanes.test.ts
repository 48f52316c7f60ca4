import { describe, expect, it } from "vitest";
import { Lanes } from "./lanes.ts";

describe("lanes", () => {
	it("park what finds no place, hold none for it, and name it when there is one", () => {
		const named: string[] = [];
		const lanes = new Lanes(2, (task) => named.push(task));
		const leave = lanes.enter("a", new Set(["slow"]));
		lanes.enter("b", new Set(["slow", "fast"]));
		expect(lanes.enter("c", new Set(["slow", "fast"]))).toBeUndefined();
		expect(lanes.taken("fast")).toBe(1);
		expect(lanes.enter("d", new Set(["fast"]))).toBeDefined();
		expect(named).toEqual([]);
		leave?.();
		expect(named).toEqual(["c"]);
		expect(lanes.enter("c", new Set(["slow"]))).toBeDefined();
		expect(lanes.taken("slow")).toBe(2);
	});
});
