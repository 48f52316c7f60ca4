import { FakeClock } from "@plinth/runtime/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BytePacer } from "./byte-pacer.ts";

const { signal: never } = new AbortController();

/** Lets promises settle. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("a byte pacer", () => {
	it("admits immediately until the burst is used, and then after enough time has passed", async () => {
		const clock = new FakeClock();
		const pacer = new BytePacer({ perSecond: 1_000, burst: 5_000 }, clock);
		expect(pacer.admit("a", never)).toBeUndefined();
		pacer.charge("a", 7_000);
		let admitted = false;
		const admission = pacer.admit("a", never)?.then(() => {
			admitted = true;
		});
		await clock.advance(1_999);
		await settled();
		expect(admitted).toBe(false);
		await clock.advance(10);
		await admission;
		expect(admitted).toBe(true);
		expect(pacer.admit("b", never)).toBeUndefined();
	});

	it("admits waiting readers in order", async () => {
		const clock = new FakeClock();
		const pacer = new BytePacer({ perSecond: 1_000, burst: 1_000 }, clock);
		pacer.charge("a", 2_000);
		const order: number[] = [];
		const admissions = [0, 1, 2].map((each) =>
			pacer.admit("a", never)?.then(() => {
				order.push(each);
				pacer.charge("a", 1_000);
			}),
		);
		await clock.advance(10_000);
		await Promise.all(admissions);
		expect(order).toEqual([0, 1, 2]);
	});

	it("forgets waiting readers when their call has ended", async () => {
		const pacer = new BytePacer({ perSecond: 1, burst: 1 }, new FakeClock());
		pacer.charge("a", 1_000_000);
		const call = new AbortController();
		const admission = pacer.admit("a", call.signal);
		expect(pacer.waiting).toBe(1);
		call.abort();
		await admission;
		expect(pacer.waiting).toBe(0);
		expect(pacer.admit("a", call.signal)).toBeUndefined();
	});

	it("never reads more of a key than its burst, its rate and a chunk each, and forgets idle keys", async () => {
		await fc.assert(
			fc.asyncProperty(
				fc.array(
					fc.record({
						key: fc.constantFrom("a", "b"),
						bytes: fc.nat(64 * 1024),
						waitMs: fc.nat(200),
					}),
					{ minLength: 1, maxLength: 40 },
				),
				async (steps) => {
					const clock = new FakeClock();
					const rate = { perSecond: 100_000, burst: 150_000 };
					const pacer = new BytePacer(rate, clock);
					const read = new Map<string, number>();
					const reads: Promise<void>[] = [];
					const charge = (key: string, bytes: number) => {
						const before = read.get(key) ?? 0;
						expect(before).toBeLessThanOrEqual(
							rate.burst + (clock.monotonic() / 1_000) * rate.perSecond + 1,
						);
						read.set(key, before + bytes);
						pacer.charge(key, bytes);
					};
					for (const { key, bytes, waitMs } of steps) {
						await clock.advance(waitMs);
						const admitted = pacer.admit(key, never);
						if (admitted === undefined) {
							charge(key, bytes);
						} else {
							reads.push(admitted.then(() => charge(key, bytes)));
						}
					}
					await clock.advance(600_000);
					await Promise.all(reads);
					for (let each = 0; each < 4; each += 1) {
						pacer.charge("other", 0);
						await clock.advance(60_000);
					}
					expect(pacer.size).toBeLessThanOrEqual(1);
				},
			),
		);
	});
});
