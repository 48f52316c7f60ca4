import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { sleep } from "./clock.ts";
import { type RetryOptions, retry } from "./retry.ts";
import { FakeClock } from "./testing/fake-clock.ts";
import { seededRandom } from "./testing/seeded-random.ts";

describe("retry", () => {
	/** Retries an operation whose attempts take so long and fail. Returns the delays. */
	async function delaysOf(
		tookMs: readonly number[],
		options: Partial<RetryOptions> = {},
	): Promise<{ readonly delaysMs: readonly number[]; readonly outcome: unknown }> {
		const clock = new FakeClock();
		const delaysMs: number[] = [];
		let endedMs: number | undefined;
		let attempts = 0;
		const attempt = async () => {
			if (endedMs !== undefined) {
				delaysMs.push(clock.monotonic() - endedMs);
			}
			clock.advance(tookMs[attempts] ?? 0);
			attempts += 1;
			endedMs = clock.monotonic();
			if (attempts <= tookMs.length) {
				throw new Error(`attempt ${attempts}`);
			}
			return "done";
		};
		const result = retry(attempt, {
			runtime: { clock, random: { next: () => 0.5 } },
			attempts: 10,
			isRetryable: () => true,
			baseMs: 10,
			maxMs: 100,
			...options,
		}).catch((failure: unknown) => failure);
		const settled = { done: false };
		void result.then(() => {
			settled.done = true;
		});
		for (let turn = 0; turn < 50 && !settled.done; turn += 1) {
			await new Promise((resolve) => setImmediate(resolve));
			clock.advanceToTimer();
		}
		return { delaysMs, outcome: await result };
	}

	it("waits twice as long after each failure, and longer after longer attempts", async () => {
		expect(await delaysOf([0, 0, 0, 0, 0])).toEqual({
			delaysMs: [10, 20, 40, 80, 100],
			outcome: "done",
		});
		expect((await delaysOf([30, 0])).delaysMs).toEqual([30, 20]);
		expect((await delaysOf([50, 50, 50, 50, 50])).delaysMs).toEqual([50, 100, 200, 400, 400]);
	});

	it("multiplies each delay by a random factor", async () => {
		const draws = [0, 0.999];
		const random = { next: () => draws.shift() ?? 0.5 };
		const clock = new FakeClock();
		const delaysMs: number[] = [];
		const counting = {
			...{ now: () => clock.now(), monotonic: () => clock.monotonic() },
			setTimer(delayMs: number, callback: () => void) {
				delaysMs.push(delayMs);
				queueMicrotask(callback);
				return { cancel: () => {} };
			},
		};
		let attempts = 0;
		await retry(
			async () => {
				attempts += 1;
				if (attempts < 3) {
					throw new Error("again");
				}
			},
			{
				runtime: { clock: counting, random },
				attempts: 3,
				isRetryable: () => true,
				baseMs: 10,
				maxMs: 100,
			},
		);
		expect(delaysMs).toEqual([5, 20 * 1.499]);
	});

	it("gives up after the last attempt, and after other failures", async () => {
		const last = await delaysOf([0, 0, 0], { attempts: 2 });
		expect(last).toEqual({ delaysMs: [10], outcome: new Error("attempt 2") });
		const other = await delaysOf([0, 0, 0], { isRetryable: () => false });
		expect(other).toEqual({ delaysMs: [], outcome: new Error("attempt 1") });
	});

	it("lets 16 contenders together write at least a third as often as one alone", () =>
		forEachSeed(5, async (seed) => {
			const random = seededRandom(seed);
			/** How many writes by compare-and-swap the writers make in ten seconds, 10 ms an attempt. */
			async function writesOf(writers: number): Promise<number> {
				const clock = new FakeClock();
				let version = 0;
				const attempt = async () => {
					const read = version;
					await sleep(clock, 10);
					if (read !== version) {
						throw new Error("conflict");
					}
					version += 1;
				};
				const retries = { attempts: 100, isRetryable: () => true, baseMs: 1, maxMs: 100 };
				const end = new AbortController();
				const running = Array.from({ length: writers }, async () => {
					while (!end.signal.aborted) {
						await retry(attempt, { ...retries, runtime: { clock, random }, signal: end.signal });
					}
				});
				const ended = Promise.allSettled(running);
				await clock.advanceAsync(10_000);
				const writes = version;
				end.abort();
				await clock.advanceAsync(10);
				await ended;
				return writes;
			}
			const alone = await writesOf(1);
			expect(alone).toBeGreaterThan(900);
			expect(await writesOf(16)).toBeGreaterThan(alone / 3);
		}));

	it("ends with its signal", async () => {
		const signal = AbortSignal.abort(new Error("stopped"));
		expect((await delaysOf([0], { signal })).outcome).toEqual(new Error("stopped"));
	});
});
