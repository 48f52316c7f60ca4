import { Code, ConnectError } from "@connectrpc/connect";
import { idOf } from "@plinth/resource";
import { type EventLoop, EventLoopScheduler } from "@plinth/runtime";
import { seededRandom } from "@plinth/runtime/testing";
import { Artist } from "../demo.fixture.ts";
import type { Simulation } from "./simulation.fixture.ts";

/** The longest duration of a call, in milliseconds. */
const longestCallMs = 0.5;

/** The time that loops may use in one iteration of the event loop: the budget, and the turns that ignore it. */
export const longestAllowedMs = 5 + 48 * longestCallMs;

/** Loops that run beside the callers of a simulation. */
export interface StarvingLoops {
	/** Resolves when all loops are over. */
	readonly ended: Promise<unknown>;
	/** The longest time in which they let nothing else run, in milliseconds. */
	readonly longestMs: () => number;
}

/**
 * Starts loops that call without waiting for anything, as modules and controllers do over storage in memory. Their
 * number, the duration of their calls, and what runs between their iterations of the event loop are drawn.
 *
 * @param hasBudget - `false` plants a fault: the time for loops never ends.
 */
export function startLoops(
	simulation: Simulation,
	seed: number,
	{ hasBudget = true } = {},
): StarvingLoops {
	// A stream of its own, so that the callers do the same with and without loops.
	const random = seededRandom(seed ^ 0x1b873593);
	const { scheduler } = simulation;
	let nowMs = 0;
	let sinceMs = 0;
	let longestMs = 0;
	const loop: EventLoop = {
		now: () => (hasBudget ? nowMs : 0),
		nextIteration: (callback) =>
			scheduler.schedule(() => {
				sinceMs = nowMs;
				callback();
			}),
		// The simulation runs a task when no promise can settle without it.
		microtasksDone: (callback) => queueMicrotask(() => process.nextTick(callback)),
	};
	const client = simulation.connect(new EventLoopScheduler(loop), () => {
		nowMs += random.next() * longestCallMs;
		longestMs = Math.max(longestMs, nowMs - sinceMs);
	});
	const loops = 1 + Math.floor(random.next() * 4);
	const read = async () => {
		try {
			await client.read({ id: idOf(Artist, "absent") });
		} catch (error) {
			if (!(error instanceof ConnectError) || error.code !== Code.NotFound) {
				throw error;
			}
		}
	};
	const ended = Promise.all(
		Array.from({ length: loops }, async () => {
			for (let step = 0; step < 150; step++) {
				await read();
			}
		}),
	);
	return { ended, longestMs: () => longestMs };
}
