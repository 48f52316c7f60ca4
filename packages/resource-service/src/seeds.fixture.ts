/**
 * The seeds that a suite runs: `count` of them from 1 on, unless the environment names how many
 * (PLINTH_SEEDS) and the first one (PLINTH_SEED). `PLINTH_SEED=17 PLINTH_SEEDS=1` replays a run.
 */
function seeds(count: number): readonly number[] {
	const length = Number(process.env.PLINTH_SEEDS ?? count);
	const first = Number(process.env.PLINTH_SEED ?? 1);
	return Array.from({ length }, (_, index) => first + index);
}

/**
 * Runs a check for each seed.
 *
 * @throws Error that names the seed, caused by what the check threw.
 */
export async function forEachSeed(
	count: number,
	check: (seed: number) => Promise<void>,
): Promise<void> {
	for (const seed of seeds(count)) {
		try {
			await check(seed);
		} catch (cause) {
			throw new Error(`seed ${seed} fails: PLINTH_SEED=${seed} PLINTH_SEEDS=1 replays it`, {
				cause,
			});
		}
	}
}
