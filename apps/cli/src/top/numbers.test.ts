import { describe, expect, it } from "vitest";
import { bytes, count, latency, rate } from "./numbers.ts";

describe("numbers of an overview", () => {
	it("are short", () => {
		expect([0, 99_999, 123_456, 999_499, 999_500, 9_940_000, 12_345_678n].map(count)).toEqual([
			...["0", "99999", "123k", "999k", "1.0M", "9.9M", "12M"],
		]);
		expect([0, 1_023, 1_024, 200 * 1024 ** 2, 5n * 1024n ** 4n].map(bytes)).toEqual([
			...["0B", "1023B", "1.0KiB", "200MiB", "5.0TiB"],
		]);
		// Something that happens is never shown as nothing.
		expect([0, 0.01, 1.26, 9.96, 1_234.5, 2e6].map(rate)).toEqual([
			...["0", "0.1", "1.3", "10", "1235", "2.0M"],
		]);
		expect([0, 0.354, 9.94, 12.4, 999.4, 999.6].map(latency)).toEqual([
			...["0.01ms", "0.35ms", "9.9ms", "12ms", "999ms", "1.0s"],
		]);
	});
});
