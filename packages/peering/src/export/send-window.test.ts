import { FakeClock } from "@plinth/runtime/testing";
import { expect, it } from "vitest";
import { SendWindow } from "./send-window.ts";

const never = new AbortController().signal;
const limits = { messages: 3, bytes: 100, acknowledgeMs: 1_000 };

/** Whether a message may be sent now. */
async function hasRoom(window: SendWindow): Promise<boolean> {
	const room = window.room(never).then(
		() => true,
		() => false,
	);
	return Promise.race([room, new Promise<boolean>((resolve) => setImmediate(resolve, false))]);
}

it("a window has room until its messages or bytes are in flight, and again as they are acknowledged", async () => {
	const window = new SendWindow(limits, new FakeClock());
	expect([window.send(1), window.send(1)]).toEqual([1n, 2n]);
	expect(await hasRoom(window)).toBe(true);
	window.send(1);
	expect(await hasRoom(window)).toBe(false);
	window.acknowledge(1n);
	expect(await hasRoom(window)).toBe(true);
	window.send(99);
	expect(await hasRoom(window)).toBe(false);
	window.acknowledge(3n);
	expect(await hasRoom(window)).toBe(true);
});

it("a window tells how many messages are not acknowledged, and how long the oldest of them has waited", async () => {
	const clock = new FakeClock();
	const window = new SendWindow(limits, clock);
	const state = () => [window.sent, window.unacknowledged, window.oldestMs];
	expect(state()).toEqual([0, 0, 0]);
	window.send(1);
	await clock.advance(20);
	window.send(1);
	await clock.advance(5);
	expect(state()).toEqual([2, 2, 25]);
	window.acknowledge(1n);
	expect(state()).toEqual([2, 1, 5]);
	window.acknowledge(2n);
	expect(state()).toEqual([2, 0, 0]);
});

it("a window that stays full ends with Aborted", async () => {
	const clock = new FakeClock();
	const window = new SendWindow(limits, clock);
	window.send(100);
	const room = window.room(never);
	clock.advance(1_001);
	await expect(room).rejects.toThrow("nothing was acknowledged for 1 s: stream again");
});
