import { Code } from "@connectrpc/connect";
import { SeededScheduler, seededRandom } from "@plinth/runtime/testing";
import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { WriteQueues } from "./write-queues.ts";

const never = new AbortController();

describe("writes of one resource", () => {
	it("begin in order of arrival, alone after a conflict, and none is lost", () =>
		forEachSeed(100, async (seed) => {
			const random = seededRandom(seed);
			const scheduler = new SeededScheduler({ seed });
			const queues = new WriteQueues();
			const began: number[] = [];
			const ended: number[] = [];
			const canceled: number[] = [];
			let running = 0;
			let alone = false;
			const pause = async () => {
				while (random.next() < 0.5) {
					await scheduler.pause();
				}
			};
			const write = async (ticket: number) => {
				const stop = new AbortController();
				if (random.next() < 0.2) {
					void scheduler.pause().then(() => stop.abort(new Error("canceled")));
				}
				try {
					const admitted = await queues.enter("key", stop);
					began.push(ticket);
					expect(alone).toBe(false);
					running += 1;
					await pause();
					const conflicts = random.next() < 0.3;
					if (conflicts) {
						running -= 1;
						await admitted.alone();
						expect(running).toBe(0);
						alone = true;
						running += 1;
						await pause();
						expect(running).toBe(1);
						alone = false;
					}
					running -= 1;
					ended.push(ticket);
					admitted.end(random.next() < 0.8 ? "committed" : "failed");
					admitted.end("failed");
				} catch (error) {
					expect(error).toEqual(new Error("canceled"));
					canceled.push(ticket);
				}
			};
			const writes: Promise<void>[] = [];
			for (let ticket = 0; ticket < 60; ticket += 1) {
				writes.push(write(ticket));
				if (random.next() < 0.3) {
					await scheduler.run(pause());
				}
			}
			await scheduler.run(Promise.all(writes));
			expect(began).toEqual(began.toSorted((a, b) => a - b));
			expect([...ended, ...canceled].toSorted((a, b) => a - b)).toEqual(
				Array.from({ length: 60 }, (_, ticket) => ticket),
			);
			expect(queues.resources).toBe(0);
		}));

	it("keep their places when they meet a conflict", async () => {
		const queues = new WriteQueues();
		const order: string[] = [];
		const first = await queues.enter("hot", never);
		const second = await queues.enter("hot", never);
		const firstAlone = first.alone().then(() => order.push("first"));
		const third = Promise.resolve(queues.enter("hot", never)).then((admitted) => {
			order.push("third");
			return admitted;
		});
		const secondAlone = second.alone().then(() => order.push("second"));
		await firstAlone;
		first.end("committed");
		await Promise.race([secondAlone, third]);
		second.end("committed");
		(await third).end("committed");
		expect(order).toEqual(["first", "second", "third"]);
		expect(queues.resources).toBe(0);
	});

	it("are refused if too many wait", async () => {
		const queues = new WriteQueues();
		const first = await queues.enter("hot", never);
		const second = await queues.enter("hot", never);
		const waits = second.alone();
		const waiting = Array.from({ length: 16_383 }, () => queues.enter("hot", never));
		const refused = await Promise.try(() => queues.enter("hot", never)).catch((error) => error);
		expect(refused).toMatchObject({
			code: Code.ResourceExhausted,
			rawMessage:
				"16384 writes are already waiting for earlier writes of the same resources, which is the limit: try again later",
		});
		(await queues.enter("cold", never)).end("committed");
		first.end("committed");
		await waits;
		second.end("committed");
		for (const admitted of waiting) {
			(await admitted).end("committed");
		}
		expect(queues.resources).toBe(0);
	});
});
