import { Code, ConnectError } from "@connectrpc/connect";
import { idOf } from "@plinth/resource";
import { EventLoopScheduler } from "@plinth/runtime";
import {
	SeededEventLoop,
	type SeededEventLoopOptions,
	seededRandom,
} from "@plinth/runtime/testing";
import { Artist } from "../demo.fixture.ts";
import type { Simulation } from "./simulation.fixture.ts";

/** Loops that run beside the callers of a simulation. */
export interface StarvingLoops {
	/** Resolves when all loops are over. */
	readonly ended: Promise<unknown>;
	/** The event loop of their process. */
	readonly eventLoop: SeededEventLoop;
}

/**
 * Starts loops that call without waiting for anything, as modules and controllers do over storage in memory. Their
 * number, the duration of their calls, and what runs between their iterations of the event loop are drawn.
 */
export function startLoops(
	simulation: Simulation,
	seed: number,
	options: SeededEventLoopOptions = {},
): StarvingLoops {
	// A stream of its own, so that the callers do the same with and without loops.
	const random = seededRandom(seed ^ 0x1b873593);
	const eventLoop = new SeededEventLoop(simulation.scheduler, random, options);
	const client = simulation.connect(new EventLoopScheduler(eventLoop), eventLoop.call);
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
	return { ended, eventLoop };
}
