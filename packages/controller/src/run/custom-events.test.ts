import { describe, expect, it, vi } from "vitest";
import { consume } from "./custom-events.ts";

const never = new AbortController().signal;

describe("consume", () => {
	it("hands events on one at a time and ends with the source", async () => {
		const seen: number[] = [];
		let handling = 0;
		async function* source() {
			yield* [1, 2, 3];
		}
		await consume(source(), never, async (event) => {
			handling += 1;
			expect(handling).toBe(1);
			await Promise.resolve();
			seen.push(event);
			handling -= 1;
		});
		expect(seen).toEqual([1, 2, 3]);
	});

	it("passes the source's error on", async () => {
		// biome-ignore lint/correctness/useYield: it fails before it has anything to yield.
		async function* source(): AsyncGenerator<never> {
			throw new Error("source is gone");
		}
		await expect(consume(source(), never, async () => {})).rejects.toThrow("source is gone");
	});

	it("ends with the signal even if the source does not, and closes a source that can be closed", async () => {
		const stop = new AbortController();
		let closed = false;
		const source: AsyncIterable<number> = {
			[Symbol.asyncIterator]: () => ({
				next: () => new Promise(() => {}),
				return: async () => {
					closed = true;
					return { done: true, value: undefined };
				},
			}),
		};
		const consumed = consume(source, stop.signal, async () => {});
		stop.abort();
		await consumed;
		expect(closed).toBe(true);
	});

	it("ends if the source aborts the signal when it is asked for the next event", async () => {
		const stop = new AbortController();
		const source: AsyncIterable<number> = {
			[Symbol.asyncIterator]: () => ({
				next: () => {
					stop.abort();
					return new Promise(() => {});
				},
			}),
		};
		await consume(source, stop.signal, async () => {});
	});

	it("races each event with a promise of its own, which keeps no reactions to earlier events", async () => {
		const race = vi.spyOn(Promise, "race");
		try {
			async function* source() {
				yield* [1, 2, 3];
			}
			await consume(source(), never, async () => {});
			const raced = race.mock.calls.flatMap(([promises]) => [...promises]);
			expect(new Set(raced).size).toBe(raced.length);
		} finally {
			race.mockRestore();
		}
	});
});
