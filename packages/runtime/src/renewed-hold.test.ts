import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { silentLogger } from "./logger.ts";
import { RenewedHold } from "./renewed-hold.ts";
import { FakeClock } from "./testing/fake-clock.ts";

/** How the engine responds to one renewal. */
interface RenewalResponse {
	/** The delays of the request and of the response, in milliseconds. */
	readonly thereMs: number;
	readonly backMs: number;
	/** Whether the request arrives, and whether the response does. */
	readonly arrives: boolean;
	readonly returns: boolean;
}

/** A lease as the engine keeps it: it ends `ttlMs` after the last request that has arrived. */
class ModelLease {
	readonly #clock: FakeClock;
	readonly #ttlMs: number;
	readonly #responses: RenewalResponse[];
	expiresMs: number;

	constructor(clock: FakeClock, ttlMs: number, responses: readonly RenewalResponse[]) {
		this.#clock = clock;
		this.#ttlMs = ttlMs;
		this.#responses = [...responses];
		this.expiresMs = clock.monotonic() + ttlMs;
	}

	renew(signal: AbortSignal): Promise<boolean> {
		const { thereMs, backMs, arrives, returns } = this.#responses.shift() ?? lost;
		return new Promise((resolve, reject) => {
			signal.addEventListener("abort", () => reject(signal.reason));
			this.#clock.setTimer(thereMs, () => {
				if (!arrives) {
					return;
				}
				const alive = this.#clock.monotonic() < this.expiresMs;
				if (alive) {
					this.expiresMs = this.#clock.monotonic() + this.#ttlMs;
				}
				if (returns) {
					this.#clock.setTimer(backMs, () => resolve(alive));
				}
			});
			this.#clock.setTimer(2500, () => reject(new Error("no response")));
		});
	}
}

const lost: RenewalResponse = { thereMs: 0, backMs: 0, arrives: false, returns: false };

function hold(clock: FakeClock, lease: ModelLease, ttlMs: number) {
	const revoked: number[] = [];
	const gone = Promise.withResolvers<void>();
	const held = new RenewedHold({
		fence: { lease: "singletons", token: "7" },
		ttlMs,
		grantedMs: clock.monotonic(),
		clock,
		logger: silentLogger,
		renew: (signal) => lease.renew(signal),
		gone: (signal) => {
			signal.addEventListener("abort", () => gone.reject(signal.reason));
			return gone.promise;
		},
		revoke: async () => {
			revoked.push(clock.monotonic());
		},
		settled: () => {},
	});
	return { held, gone, revoked };
}

describe("a hold that is renewed", () => {
	it("lives as long as it is renewed, and no longer than the engine keeps it", async () => {
		const response = fc.record({
			thereMs: fc.integer({ min: 0, max: 3000 }),
			backMs: fc.integer({ min: 0, max: 3000 }),
			arrives: fc.boolean(),
			returns: fc.boolean(),
		});
		await fc.assert(
			fc.asyncProperty(fc.array(response, { maxLength: 12 }), async (responses) => {
				const clock = new FakeClock();
				const lease = new ModelLease(clock, 10_000, responses);
				const { held } = hold(clock, lease, 10_000);
				for (let step = 0; !held.signal.aborted; step++) {
					expect(clock.monotonic()).toBeLessThan(lease.expiresMs);
					expect(step).toBeLessThan(2000);
					await clock.advanceAsync(100);
				}
			}),
			{ numRuns: 30 },
		);
	});

	it("is kept by prompt responses", async () => {
		const clock = new FakeClock();
		const prompt = { thereMs: 5, backMs: 5, arrives: true, returns: true };
		const lease = new ModelLease(clock, 10_000, new Array(100).fill(prompt));
		const { held } = hold(clock, lease, 10_000);
		await clock.advanceAsync(100_000);
		expect(held.signal.aborted).toBe(false);
		await held.release();
	});

	it("ends at once if etcd reports that it has expired", async () => {
		const clock = new FakeClock();
		const { held, gone } = hold(clock, new ModelLease(clock, 10_000, []), 10_000);
		gone.resolve();
		await clock.advanceAsync(0);
		expect(held.signal.aborted).toBe(true);
		expect(String(held.signal.reason)).toContain("singletons");
	});

	it("is given back once, also after it has ended by itself", async () => {
		const clock = new FakeClock();
		const { held, revoked } = hold(clock, new ModelLease(clock, 10_000, []), 10_000);
		await clock.advanceAsync(8000);
		expect(held.signal.aborted).toBe(true);
		await held.release();
		await held.release();
		expect(revoked).toHaveLength(1);
	});
});
