import { seedsOr } from "@plinth/test-support/seeds";

/**
 * Runs a check for each seed: `count` of them from 1 on, unless the environment chooses others.
 *
 * @throws Error that names the seed, caused by what the check threw.
 */
export async function forEachSeed(
	count: number,
	check: (seed: number) => Promise<void>,
): Promise<void> {
	for (const seed of seedsOr(count)) {
		try {
			await check(seed);
		} catch (cause) {
			throw new Error(`seed ${seed} fails: PLINTH_SEED=${seed} PLINTH_RUNS=1 replays it`, {
				cause,
			});
		}
	}
}
