import { describe, expect, it } from "vitest";
import { parseDuration, shortDuration } from "./duration.ts";

describe("durations", () => {
	it.each([
		["0", 0],
		["0s", 0],
		["500ms", 500],
		["1.5s", 1_500],
		["2m", 120_000],
		["1h", 3_600_000],
	])("are read: %s", (text, ms) => {
		expect(parseDuration("--timeout", text)).toBe(ms);
	});

	it.each(["", "5", "-1s", "1 s", "1d", "soon"])("are refused: %j", (text) => {
		expect(() => parseDuration("--timeout", text)).toThrow(
			`--timeout "${text}" is not a duration: write it as 500ms, 30s, 2m or 1h`,
		);
	});

	it.each([
		[-5_000, "0s"],
		[119_999, "119s"],
		[120_000, "2m"],
		[7_199_000, "119m"],
		[7_200_000, "2h"],
		[47 * 3_600_000, "47h"],
		[48 * 3_600_000, "2d"],
		[366 * 86_400_000, "1y"],
	])("are told at a glance: %d ms", (ms, text) => {
		expect(shortDuration(ms)).toBe(text);
	});
});
