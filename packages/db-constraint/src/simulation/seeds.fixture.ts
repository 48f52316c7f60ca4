import { simulate } from "./simulation.fixture.ts";

/**
 * Runs seeds and describes those that break a promise. Runs `count` seeds from 0, unless the environment
 * sets the number of runs (PLINTH_RUNS) or the first seed (PLINTH_SEED).
 */
export async function brokenSeeds(count: number): Promise<readonly string[]> {
	const runs = Number(process.env.PLINTH_RUNS ?? count);
	const first = Number(process.env.PLINTH_SEED ?? 0);
	const broken: string[] = [];
	for (let seed = first; seed < first + runs && broken.length < 5; seed++) {
		const { violation } = await simulate(seed);
		if (violation !== undefined) {
			broken.push(
				`node src/simulation/main.ts --seed ${seed} --trace: promise ${violation.promise}: ${violation.message}`,
			);
		}
	}
	return broken;
}
