import { expect, it } from "vitest";
import { durationBuckets } from "./duration-buckets.ts";

/** As a server reports them. */
function counts(of: Readonly<Record<number, bigint>>): bigint[] {
	return Array.from({ length: 18 }, (_, at) => of[at] ?? 0n);
}

it("names the buckets that are not empty, and their neighbors", () => {
	expect(durationBuckets(counts({ 3: 12n, 5: 1n })).map(({ text }) => text)).toEqual([
		"0 from 2 ms to 4 ms",
		"12 from 4 ms to 8 ms",
		"0 from 8 ms to 16 ms",
		"1 from 16 ms to 32 ms",
		"0 from 32 ms to 64 ms",
	]);
	expect(durationBuckets(counts({ 0: 7n }))).toEqual([
		{ from: "0", count: 7, text: "7 below 1 ms" },
		{ from: "1 ms", count: 0, text: "0 from 1 ms to 2 ms" },
	]);
	expect(durationBuckets(counts({ 17: 1n })).map(({ text }) => text)).toEqual([
		"0 from 33 s to 66 s",
		"1 of 66 s or longer",
	]);
	expect(durationBuckets(counts({ 10: 1n })).at(1)?.text).toBe("1 from 512 ms to 1 s");
});

it("has none before the first reconcile, and of older servers", () => {
	expect([durationBuckets(counts({})), durationBuckets([])]).toEqual([[], []]);
});
