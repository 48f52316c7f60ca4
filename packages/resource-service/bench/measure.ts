/** How often each alternative is measured. */
const rounds = 15;

/** How long each round goes on, in milliseconds. */
const roundMs = 150;

/**
 * Microseconds that this process has computed, in all of its threads: what others do on the machine
 * does not count.
 */
export function computedMicroseconds(): number {
	const { user, system } = process.cpuUsage();
	return user + system;
}

/** Calls `run` again and again, `concurrency` of them at the same time. Returns microseconds per call. */
async function round(
	run: () => Promise<unknown>,
	concurrency: number,
	forMs: number,
): Promise<number> {
	let calls = 0;
	const start = computedMicroseconds();
	const end = performance.now() + forMs;
	const repeat = async () => {
		while (performance.now() < end) {
			await run();
			calls += 1;
		}
	};
	await Promise.all(Array.from({ length: concurrency }, repeat));
	return (computedMicroseconds() - start) / calls;
}

/**
 * Measures alternatives in turns, so that what else the machine does hits all of them. Returns the
 * microseconds per call of each.
 */
export async function compare(
	alternatives: readonly (() => Promise<unknown>)[],
	{ concurrency = 1 } = {},
): Promise<readonly number[]> {
	for (const run of alternatives) {
		await round(run, concurrency, 4 * roundMs);
	}
	const measured = alternatives.map((): number[] => []);
	for (let count = 0; count < rounds; count += 1) {
		for (const [index, run] of alternatives.entries()) {
			measured[index]?.push(await round(run, concurrency, roundMs));
		}
	}
	return measured.map(best);
}

/** The cheapest round: a collection of garbage from elsewhere only ever adds to it. */
export function best(microseconds: readonly number[]): number {
	return Math.min(...microseconds);
}
