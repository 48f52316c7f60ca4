/*
 * How the environment chooses the runs of seeded tests: `PLINTH_SEED` is the seed, or the first of several, and
 * `PLINTH_RUNS` the number of runs.
 */

/** The seed of a run: that of the environment, or else `seed`. */
export function seedOr(seed: number): number {
	return integerFrom("PLINTH_SEED") ?? seed;
}

/** The number of runs: that of the environment, or else `runs`. */
export function runsOr(runs: number): number {
	return integerFrom("PLINTH_RUNS") ?? runs;
}

/** The seeds of as many runs: `runs` of them from `first` on, unless the environment chooses others. */
export function seedsOr(runs: number, first = 1): readonly number[] {
	const start = seedOr(first);
	return Array.from({ length: runsOr(runs) }, (_, index) => start + index);
}

function integerFrom(name: string): number | undefined {
	const text = process.env[name];
	if (text === undefined || text === "") {
		return undefined;
	}
	const value = Number(text);
	if (!Number.isInteger(value)) {
		throw new Error(`${name} must be an integer, got: "${text}"`);
	}
	return value;
}
