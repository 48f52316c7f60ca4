import { availableParallelism } from "node:os";
import type { FaultName } from "../fault-points.ts";
import { mutants } from "./mutants.fixture.ts";
import { runTest } from "./run-test.fixture.ts";
import { SimulationProcess } from "./simulation-process.fixture.ts";

/** The result of running a mutant. */
export interface Verdict {
	/** Whether the simulation has found a broken promise, or its test has failed. */
	readonly isFound: boolean;
	/** The seed that found it, if the one that is recorded for the mutant did not. */
	readonly otherSeed?: number;
	/** What it has found, or why it has found nothing. */
	readonly output: string;
}

/**
 * Runs mutants: each with its test, or else in the simulation, first with its own seed, then with those below `seeds`
 * until one breaks a promise. As many processes as there are processors share them.
 */
export function runMutants(
	faults: readonly FaultName[],
	seeds: number,
): ReadonlyMap<FaultName, Promise<Verdict>> {
	const verdicts = new Map(faults.map((fault) => [fault, Promise.withResolvers<Verdict>()]));
	const waiting = verdicts.entries();
	async function work(): Promise<void> {
		using simulation = new SimulationProcess();
		for (const [fault, { resolve }] of waiting) {
			resolve(await runMutant(simulation, fault, seeds));
		}
	}
	for (let started = 0; started < availableParallelism(); started++) {
		void work();
	}
	return new Map([...verdicts].map(([fault, { promise }]) => [fault, promise]));
}

async function runMutant(
	simulation: SimulationProcess,
	fault: FaultName,
	seeds: number,
): Promise<Verdict> {
	const mutant = mutants[fault];
	if ("test" in mutant) {
		return runTest(fault, mutant.test);
	}
	const { seed: from, options: args = [] } = mutant;
	const own = await simulation.run({ fault, args, from, runs: 1 });
	if (own.kind === "found") {
		return { isFound: true, output: own.output };
	}
	const { kind, seed, output } = await simulation.run({ fault, args, from: 0, runs: seeds });
	return { isFound: kind === "found", output, ...(seed !== undefined && { otherSeed: seed }) };
}
