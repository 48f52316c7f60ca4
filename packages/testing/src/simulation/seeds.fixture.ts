import { replay } from "@plinth/test-support";
import { type SimulationOptions, type SimulationResult, simulate } from "./simulation.fixture.ts";

/**
 * Simulates each seed, and adds up the counts.
 *
 * @throws Error for the first seed that violates a guarantee, with instructions to replay it.
 */
export async function simulateAll(chosen: Iterable<number>): Promise<SimulationResult["counts"]> {
	const sums = { reconciles: 0, restarts: 0, waits: 0, fenced: 0, leaders: 0 };
	for (const seed of chosen) {
		const { violations, counts } = await simulate(seed);
		if (violations.length > 0) {
			throw new Error(
				`seed ${seed} violates a guarantee (${replay(seed)}):\n${violations.join("\n")}`,
			);
		}
		for (const name of Object.keys(sums) as (keyof typeof sums)[]) {
			sums[name] += counts[name];
		}
	}
	return sums;
}

/** The first of 200 seeds that violates a guarantee, with the violation; `undefined` where none does. */
export async function firstViolation(
	options: SimulationOptions,
): Promise<{ readonly seed: number; readonly violation: string } | undefined> {
	for (let seed = 1; seed <= 200; seed++) {
		const [violation] = (await simulate(seed, options)).violations;
		if (violation !== undefined) {
			return { seed, violation };
		}
	}
	return undefined;
}
