import { FakeClock } from "@plinth/runtime/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { PeriodLeases } from "./period-leases.ts";

const { signal } = new AbortController();
const hourMs = 3_600_000;

let clock: FakeClock;
/** The times to live of the granted leases, in seconds; the ID of a lease is its place. */
let granted: number[];
let leases: PeriodLeases;

beforeEach(() => {
	clock = new FakeClock();
	granted = [];
	const client = { grantLease: async (ttlSeconds: number) => BigInt(granted.push(ttlSeconds)) };
	leases = new PeriodLeases({ client, clock });
});

describe("the leases of periods", () => {
	it("are shared by what is written within a minute, and outlast the time to live of all of it", async () => {
		expect(await leases.current(hourMs, signal)).toBe(1n);
		await clock.advanceAsync(59_999);
		expect(await leases.current(hourMs, signal)).toBe(1n);
		await clock.advanceAsync(1);
		expect(await leases.current(hourMs, signal)).toBe(2n);
		expect(granted).toEqual([3660, 3660]);
	});

	it("are few, however long the time to live is", async () => {
		await leases.current(60 * hourMs, signal);
		await clock.advanceAsync(hourMs - 1);
		expect(await leases.current(60 * hourMs, signal)).toBe(1n);
		await clock.advanceAsync(1);
		expect(await leases.current(60 * hourMs, signal)).toBe(2n);
	});

	it("differ for another time to live, and after one was forgotten", async () => {
		expect(await leases.current(hourMs, signal)).toBe(1n);
		expect(await leases.current(2 * hourMs, signal)).toBe(2n);
		leases.forget(1n);
		expect(await leases.current(2 * hourMs, signal)).toBe(2n);
		leases.forget(2n);
		expect(await leases.current(2 * hourMs, signal)).toBe(3n);
	});
});
