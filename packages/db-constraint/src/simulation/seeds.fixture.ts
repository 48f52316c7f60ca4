import { simulate } from "./simulation.ts";

/**
 * Runs seeds and says which break a promise: `count` of them from 0 on, unless the environment names how
 * many (PLINTH_SEEDS) and the first one (PLINTH_SEED).
 */
export async function brokenSeeds(count: number): Promise<readonly string[]> {
	const length = Number(process.env.PLINTH_SEEDS ?? count);
	const first = Number(process.env.PLINTH_SEED ?? 0);
	const broken: string[] = [];
	for (let seed = first; seed < first + length && broken.length < 5; seed++) {
		const { violation } = await simulate(seed);
		if (violation !== undefined) {
			broken.push(
				`node src/simulation/main.ts --seed ${seed} --story: promise ${violation.promise}: ${violation.message}`,
			);
		}
	}
	return broken;
}
