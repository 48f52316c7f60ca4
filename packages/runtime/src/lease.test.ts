import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeFence, encodeFence, LocalLeases } from "./index.ts";

describe("fences", () => {
	it("round-trip through a header", () => {
		fc.assert(
			fc.property(
				fc.string({ minLength: 1, unit: "grapheme" }),
				fc.string({ minLength: 1, unit: "grapheme" }),
				(lease, token) => {
					expect(decodeFence(encodeFence({ lease, token }))).toEqual({ lease, token });
				},
			),
		);
	});

	it("are not decoded from a malformed header", () => {
		for (const value of ["", "x", "/x", "x/", "%/x"]) {
			expect(decodeFence(value)).toBeUndefined();
		}
	});
});

describe("LocalLeases", () => {
	const never = new AbortController().signal;

	it("grants a lease to one holder at a time, in the order of the calls", async () => {
		const leases = new LocalLeases();
		const first = await leases.acquire("singletons", never);
		const order: string[] = [];
		const second = leases.acquire("singletons", never).then((hold) => {
			order.push("second");
			return hold;
		});
		const third = leases.acquire("singletons", never).then((hold) => {
			order.push("third");
			return hold;
		});
		expect(first.signal.aborted).toBe(false);
		await first.release();
		await first.release();
		expect(first.signal.aborted).toBe(true);
		await (await second).release();
		await third;
		expect(order).toEqual(["second", "third"]);
	});

	it("keeps leases of other names apart", async () => {
		const leases = new LocalLeases();
		await leases.acquire("a", never);
		await leases.acquire("b", never);
	});

	it("says which leases with a prefix are held, now and after each change", async () => {
		const leases = new LocalLeases();
		const [a] = await Promise.all(["x-a", "y-b"].map((name) => leases.acquire(name, never)));
		const over = new AbortController();
		const changes = leases.held("x-", over.signal);
		const next = async () => [...(await changes.next()).value];
		expect(await next()).toEqual(["x-a"]);
		const second = next();
		await leases.acquire("x-c", never);
		expect(await second).toEqual(["x-a", "x-c"]);
		// A change while nobody waits is not missed.
		await a?.release();
		expect(await next()).toEqual(["x-c"]);
		const last = next();
		over.abort(new Error("seen enough"));
		await expect(last).rejects.toThrow("seen enough");
	});

	it("removes a waiter that gives up from the queue", async () => {
		const leases = new LocalLeases();
		const hold = await leases.acquire("a", never);
		const impatient = new AbortController();
		const given = leases.acquire("a", impatient.signal);
		const patient = leases.acquire("a", never);
		impatient.abort(new Error("too long"));
		await expect(given).rejects.toThrow("too long");
		await hold.release();
		expect((await patient).signal.aborted).toBe(false);
	});

	it("knows the fence of the newest hold, until another is granted", async () => {
		const leases = new LocalLeases();
		const old = await leases.acquire("a", never);
		expect(leases.isCurrent(old.fence)).toBe(true);
		leases.revoke("a");
		expect(old.signal.aborted).toBe(true);
		expect(leases.isCurrent(old.fence)).toBe(true);
		const next = await leases.acquire("a", never);
		expect(leases.isCurrent(old.fence)).toBe(false);
		expect(leases.isCurrent(next.fence)).toBe(true);
		expect(leases.isCurrent({ lease: "b", token: "1" })).toBe(false);
	});
});
