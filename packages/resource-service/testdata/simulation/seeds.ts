/**
 * The seeds that a suite runs: `count` of them from 1 on, unless the environment names how many
 * (PLINTH_SEEDS) and the first one (PLINTH_SEED). `PLINTH_SEED=17 PLINTH_SEEDS=1` replays a run.
 */
export function seeds(count: number): readonly number[] {
	const length = Number(process.env.PLINTH_SEEDS ?? count);
	const first = Number(process.env.PLINTH_SEED ?? 1);
	return Array.from({ length }, (_, index) => first + index);
}
