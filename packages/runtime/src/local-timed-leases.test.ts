import { describe, expect, it } from "vitest";
import { LocalLeases } from "./local-leases.ts";
import { LocalTimedLeases } from "./local-timed-leases.ts";
import { FakeClock } from "./testing/fake-clock.ts";
import { TooManyLeases } from "./timed-leases.ts";

const forever = new AbortController().signal;
const impatient = AbortSignal.abort(new Error("not now"));

function started(clock = new FakeClock(), limit?: number) {
	const local = new LocalLeases("p1");
	const leases = new LocalTimedLeases({ leases: local, clock, ...(limit && { limit }) });
	return { clock, local, leases };
}

/** Leases of a process that has run for long. */
function leasesFor(limit?: number) {
	const it = started(new FakeClock(), limit);
	it.clock.advance(it.leases.ttlMs);
	return it;
}

describe("LocalTimedLeases", () => {
	it("grant no lease before those of an earlier process have expired", async () => {
		const { clock, leases } = started();
		expect(await leases.grant("a", "one", impatient)).toBeUndefined();
		const granted = leases.grant("a", "one", forever);
		let isGranted = false;
		void granted.then(() => {
			isGranted = true;
		});
		clock.advance(leases.ttlMs - 1);
		await Promise.resolve();
		expect(isGranted).toBe(false);
		clock.advance(1);
		expect(await granted).toEqual({ lease: "a", token: "p1.1" });
	});

	it("grant a lease to one holder at a time, until it is released or not renewed", async () => {
		const { clock, local, leases } = leasesFor();
		const first = await leases.grant("a", "one", impatient);
		expect(await leases.grant("a", "two", impatient)).toBeUndefined();
		clock.advance(9_000);
		expect(await leases.renew("a", "one")).toBeDefined();
		clock.advance(9_000);
		expect(await leases.renew("a", "two")).toBeUndefined();
		const second = leases.grant("a", "two", forever);
		clock.advance(1_000);
		expect(await second).toEqual({ lease: "a", token: "p1.2" });
		expect(await leases.renew("a", "one")).toBeUndefined();
		expect(first && local.isCurrent(first)).toBe(false);
		// What another has released stays with its holder.
		await leases.release("a", "one");
		expect(await leases.renew("a", "two")).toBeDefined();
		await leases.release("a", "two");
		expect(await leases.grant("a", "three", impatient)).toEqual({ lease: "a", token: "p1.3" });
	});

	it("grant the same hold to a request that is repeated, also while both wait", async () => {
		const { leases } = leasesFor();
		await leases.grant("a", "one", impatient);
		const both = [leases.grant("a", "two", forever), leases.grant("a", "two", forever)];
		await leases.release("a", "one");
		expect(await Promise.all(both)).toEqual([
			{ lease: "a", token: "p1.2" },
			{ lease: "a", token: "p1.2" },
		]);
	});

	it("accept no fence once its hold has ended", async () => {
		const { clock, local, leases } = leasesFor();
		const fence = await leases.grant("a", "one", impatient);
		expect(fence && local.isCurrent(fence)).toBe(true);
		clock.advance(leases.ttlMs);
		expect(fence && local.isCurrent(fence)).toBe(false);
	});

	it("end with what the engine revokes", async () => {
		const { local, leases } = leasesFor();
		await leases.grant("a", "one", impatient);
		local.revoke("a");
		expect(await leases.renew("a", "one")).toBeUndefined();
		expect(await leases.grant("a", "two", impatient)).toBeDefined();
	});

	it("hold as many as the limit, and keep nothing of what has ended", async () => {
		const { clock, leases, local } = leasesFor(2);
		await leases.grant("a", "one", impatient);
		await leases.grant("b", "one", impatient);
		await expect(leases.grant("c", "one", impatient)).rejects.toThrow(TooManyLeases);
		// A held one can be waited for.
		expect(await leases.grant("a", "two", impatient)).toBeUndefined();
		await leases.release("a", "one");
		expect(await leases.grant("c", "one", impatient)).toBeDefined();
		clock.advance(leases.ttlMs);
		const held = local.held("", new AbortController().signal);
		expect((await held.next()).value.size).toBe(0);
	});
});
