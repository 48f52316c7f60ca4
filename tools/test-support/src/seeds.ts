import { inject } from "vitest";
import "./test-length.ts";

const length = inject("testLength");

/** The first seed of this test run. */
export const seed = length.seed;

/** How many runs a test does whose own number is `usual`. */
export function runs(usual: number): number {
	return length.runs ?? usual * length.factor;
}

/** How many seconds a test lasts whose own length is `usual`. */
export function seconds(usual: number): number {
	return length.seconds ?? usual * length.factor;
}

/** The seeds of a simulation that runs `usual` of them: from the first on. */
export function seeds(usual: number): readonly number[] {
	return Array.from({ length: runs(usual) }, (_, index) => seed + index);
}

/** How to run one seed again, for the message of a failure. */
export function replay(failed: number): string {
	return `PLINTH_SEED=${failed} PLINTH_RUNS=1 replays it`;
}

/**
 * Runs a check for each seed of a simulation.
 *
 * @throws Error that names the first seed that failed and says how to replay it, caused by the check's error.
 */
export async function forEachSeed(
	usual: number,
	check: (seed: number) => Promise<void>,
): Promise<void> {
	for (const each of seeds(usual)) {
		try {
			await check(each);
		} catch (cause) {
			throw new Error(`seed ${each} fails: ${replay(each)}`, { cause });
		}
	}
}
