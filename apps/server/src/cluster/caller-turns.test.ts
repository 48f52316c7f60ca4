import { describe, expect, it } from "vitest";
import { CallerTurns } from "./caller-turns.ts";

const { signal } = new AbortController();

describe("the turns of callers", () => {
	it("are as many at once as allowed, for each caller, and passed on in order", async () => {
		const turns = new CallerTurns(2);
		const order: string[] = [];
		const take = async (name: string) => {
			const turn = await turns.take("one", signal);
			order.push(name);
			return turn;
		};
		const [first, second] = [await take("first"), await take("second")];
		const third = take("third");
		const fourth = take("fourth");
		await turns.take("another", signal);
		expect(order).toEqual(["first", "second"]);
		second[Symbol.dispose]();
		(await third)[Symbol.dispose]();
		(await fourth)[Symbol.dispose]();
		first[Symbol.dispose]();
		expect(order).toEqual(["first", "second", "third", "fourth"]);
		await take("fifth");
	});

	it("are not for those that have stopped waiting", async () => {
		const turns = new CallerTurns(1);
		const turn = await turns.take("one", signal);
		const end = new AbortController();
		const impatient = turns.take("one", end.signal);
		const patient = turns.take("one", signal);
		end.abort(new Error("too long"));
		await expect(impatient).rejects.toThrow("too long");
		await expect(turns.take("one", end.signal)).rejects.toThrow("too long");
		turn[Symbol.dispose]();
		await patient;
	});
});
