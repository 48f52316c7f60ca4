import type { LeaseHold } from "@plinth/runtime";
import { SkewedClock, seededRandom, seededRuntime } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { TimedLeases } from "./timed-leases.ts";

const forever = new AbortController().signal;

function world(options: { readonly seed?: number; readonly safeFraction?: number } = {}) {
	const { seed = 1, safeFraction } = options;
	const runtime = seededRuntime({ seed });
	const engine = new TimedLeases({
		...runtime,
		ttlMs: 10_000,
		...(safeFraction && { safeFraction }),
	});
	return { ...runtime, engine };
}

describe("TimedLeases", () => {
	it("keep a lease with its holder as long as it can renew", async () => {
		const { engine, scheduler, clock } = world();
		const hold = await scheduler.run(engine.client(clock).acquire("l", forever));
		const other = engine.client(new SkewedClock(clock, {})).acquire("l", forever);
		let isGranted = false;
		void other.then(() => {
			isGranted = true;
		});
		await scheduler.advance(100_000);
		expect([hold.signal.aborted, isGranted]).toEqual([false, false]);
		await scheduler.run(hold.release());
		const next = await scheduler.run(other);
		expect(hold.signal.aborted).toBe(true);
		expect([
			engine.client(clock).isCurrent(hold.fence),
			engine.client(clock).isCurrent(next.fence),
		]).toEqual([false, true]);
	});

	it("grant it to another only after a disconnected holder has given it up", async () => {
		const { engine, scheduler, clock } = world();
		const hold = await scheduler.run(engine.client(clock).acquire("l", forever));
		const other = engine.client(new SkewedClock(clock, {})).acquire("l", forever);
		engine.cutOff(clock);
		const next = await scheduler.run(other);
		expect(hold.signal.aborted).toBe(true);
		expect(next.signal.aborted).toBe(false);
		expect(engine.client(clock).isCurrent(hold.fence)).toBe(false);
	});

	it("stop requesting when the signal aborts", async () => {
		const { engine, scheduler, clock } = world();
		await scheduler.run(engine.client(clock).acquire("l", forever));
		const stop = new AbortController();
		const other = engine.client(clock).acquire("l", stop.signal);
		stop.abort(new Error("enough"));
		await expect(scheduler.run(other)).rejects.toThrow("enough");
	});

	it("hold no lease for a client that stopped requesting while the grant was in flight", async () => {
		const { engine, scheduler, clock } = world();
		const stop = new AbortController();
		const asked = engine.client(clock).acquire("l", stop.signal);
		stop.abort(new Error("enough"));
		await expect(scheduler.run(asked)).rejects.toThrow("enough");
		await scheduler.run(engine.client(clock).acquire("l", forever));
		expect(clock.monotonic()).toBe(0);
	});

	/** Whether two ever held it at once, with clients that are cut off now and then. */
	async function twoHolders(seed: number, safeFraction?: number): Promise<boolean> {
		const { engine, scheduler, clock } = world({ seed, ...(safeFraction && { safeFraction }) });
		const random = seededRandom(seed);
		const stop = new AbortController();
		const holds = new Set<LeaseHold>();
		let overlap = false;
		const compete = async (own: SkewedClock) => {
			while (!stop.signal.aborted) {
				const hold = await engine.client(own).acquire("l", stop.signal);
				if (hold.signal.aborted) {
					continue;
				}
				overlap ||= [...holds].some(({ signal }) => !signal.aborted);
				holds.add(hold);
				await new Promise((resolve) => hold.signal.addEventListener("abort", resolve));
				holds.delete(hold);
			}
		};
		const clocks = [0, 1, 2].map(() => new SkewedClock(clock, { rate: 0.9 + random.next() * 0.2 }));
		for (const own of clocks) {
			compete(own).catch(() => {});
		}
		for (let step = 0; step < 60; step++) {
			const own = clocks[Math.floor(random.next() * clocks.length)];
			if (own !== undefined && random.next() < 0.5) {
				engine.cutOff(own);
			} else {
				engine.reconnectAll();
			}
			await scheduler.advance(random.next() * 5_000);
		}
		stop.abort();
		return overlap;
	}

	it("are never held by two clients at a time, for any clocks within the allowed difference", async () => {
		for (let seed = 1; seed <= 100; seed++) {
			expect({ seed, overlap: await twoHolders(seed) }).toEqual({ seed, overlap: false });
		}
	});

	it("would be held by two, if holders relied on a grant for longer than it lasts", async () => {
		const overlaps = [];
		for (let seed = 1; seed <= 20; seed++) {
			overlaps.push(await twoHolders(seed, 1.5));
		}
		expect(overlaps).toContain(true);
	});
});
