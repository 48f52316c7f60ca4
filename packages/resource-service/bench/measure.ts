import { unlessQuick } from "@plinth/bench";

/** How long a round goes on, in milliseconds. */
const roundMs = unlessQuick(150, 5);

/**
 * Microseconds that this process has computed, in all of its threads: what others do on the machine
 * does not count.
 */
export function computedMicroseconds(): number {
	const { user, system } = process.cpuUsage();
	return user + system;
}

/** Calls `run` again and again, `concurrency` of them at the same time. Returns microseconds per call. */
export async function computedPerCall(
	run: () => Promise<unknown>,
	concurrency: number,
): Promise<number> {
	let calls = 0;
	const start = computedMicroseconds();
	const end = performance.now() + roundMs;
	const repeat = async () => {
		do {
			await run();
			calls += 1;
		} while (performance.now() < end);
	};
	await Promise.all(Array.from({ length: concurrency }, repeat));
	return (computedMicroseconds() - start) / calls;
}
