import { describe, expect, it } from "vitest";
import { requeueAfter, requeueNow } from "./requeue.ts";

describe("requeueAfter", () => {
	it("accepts any finite number of milliseconds", () => {
		expect(requeueAfter(0.5).afterMs).toBe(0.5);
		expect(requeueAfter(2 ** 40).afterMs).toBe(2 ** 40);
		expect(requeueNow.afterMs).toBe(0);
	});

	it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])("refuses %s", (delayMs) => {
		expect(() => requeueAfter(delayMs)).toThrow(RangeError);
	});
});
