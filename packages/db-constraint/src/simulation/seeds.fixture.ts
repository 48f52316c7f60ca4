import { seedsOr } from "@plinth/test-support/seeds";
import { simulate } from "./simulation.fixture.ts";

/**
 * Runs seeds and returns those that break a promise: `count` of them from 0 on, unless the environment
 * chooses others.
 */
export async function brokenSeeds(count: number): Promise<readonly string[]> {
	const broken: string[] = [];
	for (const seed of seedsOr(count, 0)) {
		if (broken.length === 5) {
			break;
		}
		const { violation } = await simulate(seed);
		if (violation !== undefined) {
			broken.push(
				`node src/simulation/main.ts --seed ${seed} --trace: promise ${violation.promise}: ${violation.message}`,
			);
		}
	}
	return broken;
}
