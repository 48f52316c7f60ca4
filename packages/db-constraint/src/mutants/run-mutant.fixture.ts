import { availableParallelism } from "node:os";
import type { FaultName } from "../fault-points.ts";
import { mutants } from "./mutants.fixture.ts";
import { SimulationProcess } from "./simulation-process.fixture.ts";

/** The result of simulating a mutant. */
export interface Verdict {
	/** Whether the simulation has found a broken promise. */
	readonly isFound: boolean;
	/** The seed that found it, if the one that is recorded for the mutant did not. */
	readonly otherSeed?: number;
	/** What it has found, or why it has found nothing. */
	readonly output: string;
}

/**
 * Simulates mutants: each first with its own seed, then with those below `seeds` until one breaks a promise. As many
 * processes as there are processors share them.
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
	const { seed: from, options: args = [] } = mutants[fault];
	const own = await simulation.run({ fault, args, from, runs: 1 });
	if (own.kind === "found") {
		return { isFound: true, output: own.output };
	}
	const { kind, seed, output } = await simulation.run({ fault, args, from: 0, runs: seeds });
	return { isFound: kind === "found", output, ...(seed !== undefined && { otherSeed: seed }) };
}
