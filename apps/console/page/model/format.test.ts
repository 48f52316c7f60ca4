import { expect, it } from "vitest";
import {
	bytes,
	count,
	dateTime,
	milliseconds,
	rate,
	shortDuration,
	zonedDateTime,
	zoneName,
} from "./format.ts";

it.each([
	[-5_000, "0s"],
	[999, "0s"],
	[59_999, "59s"],
	[192_000, "3m12s"],
	[3_600_000, "1h"],
	[3_605_000, "1h5s"],
	[12 * 3_600_000 + 60_000, "12h"],
	[49 * 3_600_000, "2d1h"],
	[400 * 86_400_000, "400d"],
])("a duration of %d ms is %s", (ms, text) => {
	expect(shortDuration(ms)).toBe(text);
});

it.each([
	[0, "0.01 ms"],
	[0.054, "0.05 ms"],
	[0.996, "1.0 ms"],
	[9.94, "9.9 ms"],
	[9.96, "10 ms"],
	[999.4, "999 ms"],
	[999.6, "1.0 s"],
	[12_345, "12.3 s"],
])("a latency of %d ms is %s", (ms, text) => {
	expect(milliseconds(ms)).toBe(text);
});

it("shortens numbers, bytes and rates", () => {
	expect([count(7), count(999), count(-1_000)]).toEqual(["7", "999", "-1,000"]);
	expect([count(12_345), count(1_234_567n), count(99_999_999)]).toEqual(["12,345", "1.2M", "100M"]);
	expect([bytes(1_023), bytes(1_536), bytes(12n * 2n ** 30n)]).toEqual([
		"1023 B",
		"1.5 KiB",
		"12 GiB",
	]);
	expect([rate(0), rate(0.01), rate(9.94), rate(41.4)]).toEqual(["0", "0.1", "9.9", "41"]);
});

it("writes an instant to the second", () => {
	expect(dateTime(new Date(2026, 0, 2, 3, 4, 5).getTime())).toBe("2026-01-02 03:04:05");
});

it("names the zone of an instant", () => {
	expect([zoneName(0), zoneName(330), zoneName(-150)]).toEqual(["UTC", "UTC+05:30", "UTC-02:30"]);
	const ms = new Date(2026, 0, 2, 3, 4, 5).getTime();
	expect(zonedDateTime(ms)).toMatch(/^2026-01-02 03:04:05 UTC/);
});
