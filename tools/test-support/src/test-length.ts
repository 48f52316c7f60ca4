/*
 * How long tests run, and from which seed. `pnpm test` and `pnpm test:deep` always run the same seeds, so that
 * they fail because of a change; `pnpm test:soak` starts from a seed of its own, which its tests print.
 *
 *     PLINTH_SEED     the first seed
 *     PLINTH_RUNS     the number of runs (of a property, of a simulation's seeds) instead of a suite's own;
 *                     PLINTH_SEED=17 PLINTH_RUNS=1 replays one
 *     PLINTH_SECONDS  the length of tests that disturb real processes for a while
 *     PLINTH_SOAK     in `pnpm test:soak`, the factor of all numbers of runs and all lengths; 20 unless set
 */

declare module "vitest" {
	interface ProvidedContext {
		testLength: TestLength;
	}
}

/** What the environment says about the length of a test run. */
export interface TestLength {
	readonly seed: number;
	/** Undefined: each suite's own. */
	readonly runs: number | undefined;
	/** Undefined: each suite's own. */
	readonly seconds: number | undefined;
	readonly factor: number;
}

const prefix = "PLINTH_";

/**
 * Reads the variables above, and removes them from the environment: servers that tests start refuse
 * variables with this prefix that they don't know.
 *
 * @throws Error if one is not a positive integer.
 */
export function takeTestLength(environment: NodeJS.ProcessEnv, isSoak: boolean): TestLength {
	const take = (name: string): number | undefined => {
		const text = environment[`${prefix}${name}`];
		if (text === undefined || text === "") {
			return undefined;
		}
		delete environment[`${prefix}${name}`];
		if (!/^[1-9]\d*$/.test(text)) {
			throw new Error(`${prefix}${name} must be a positive integer, got: "${text}"`);
		}
		return Number(text);
	};
	const soak = take("SOAK");
	return {
		seed: take("SEED") ?? (isSoak ? 1 + Math.floor(Math.random() * 1_000_000_000) : 1),
		runs: take("RUNS"),
		seconds: take("SECONDS"),
		factor: isSoak ? (soak ?? 20) : 1,
	};
}
