import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { DecodeTurns } from "./decode-turns.ts";

const { signal: never } = new AbortController();
const loopRound = () => new Promise((resolve) => setImmediate(resolve));

describe("turns of decoding", () => {
	it("come one per round of the event loop, and to each subject before any comes twice", async () => {
		const turns = new DecodeTurns(new FakeClock());
		const order: string[] = [];
		const take = async (subject: string) => {
			await turns.take(subject, never);
			order.push(subject);
		};
		const all = ["a", "a", "a", "b", "c"].map(take);
		await Promise.resolve();
		expect(order).toEqual(["a"]);
		await Promise.all(all);
		expect(order).toEqual(["a", "a", "b", "c", "a"]);
	});

	it("leave as much time to others as each took", async () => {
		const clock = new FakeClock();
		const turns = new DecodeTurns(clock);
		expect(turns.take("a", never)).toBeUndefined();
		let isSecond = false;
		const second = turns.take("a", never)?.then(() => {
			isSecond = true;
		});
		// The first takes 100 ms.
		await clock.advance(100);
		await loopRound();
		await clock.advance(99);
		await loopRound();
		expect(isSecond).toBe(false);
		await clock.advance(1);
		await second;
	});

	it("pass by calls that have ended", async () => {
		const turns = new DecodeTurns(new FakeClock());
		expect(turns.take("a", never)).toBeUndefined();
		const call = new AbortController();
		const ended = turns.take("a", call.signal);
		const next = turns.take("a", never);
		call.abort();
		await Promise.all([ended, next]);
		await loopRound();
		expect(turns.take("a", never)).toBeUndefined();
	});
});
