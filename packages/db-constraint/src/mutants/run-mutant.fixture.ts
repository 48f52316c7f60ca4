import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import type { FaultName } from "../fault-points.ts";
import { mutants } from "./mutants.fixture.ts";

const plantFault = new URL("./plant-fault.fixture.ts", import.meta.url).href;
const simulation = fileURLToPath(new URL("../simulation/main.ts", import.meta.url));

/** The result of simulating a mutant. */
export interface Verdict {
	/** Whether the simulation has found a broken promise. */
	readonly isFound: boolean;
	/** The seed that found it, if the one that is recorded for the mutant did not. */
	readonly otherSeed?: number;
	/** The last lines of its output. */
	readonly output: string;
}

/**
 * Runs the simulation in a process with the fault: first with the mutant's own seed, then with those below `seeds`
 * until one finds a violation.
 */
export async function runMutant(fault: FaultName, seeds: number): Promise<Verdict> {
	const verdict = await run(fault, mutants[fault].seed, 1);
	if (verdict.isFound) {
		return verdict;
	}
	const search = await run(fault, 0, seeds);
	const otherSeed = /^seed (\d+): promise /m.exec(search.output)?.[1];
	return otherSeed === undefined ? search : { ...search, otherSeed: Number(otherSeed) };
}

async function run(fault: FaultName, from: number, seeds: number): Promise<Verdict> {
	const program = ["--import", plantFault, simulation];
	const { options = [] } = mutants[fault];
	const args = ["--from", `${from}`, "--runs", `${seeds}`, "--max-failures", "1", ...options];
	const env = { ...process.env, NODE_ENV: "production", FAULT: fault };
	try {
		const { stdout } = await promisify(execFile)(process.execPath, [...program, ...args], { env });
		return { isFound: false, output: lastLines(stdout) };
	} catch (failure) {
		const { code, stdout, stderr } = outputOf(failure);
		const isFound = code === 1 && stdout.includes(": promise ");
		return { isFound, output: lastLines(isFound ? stdout : `${stdout}${stderr}`) };
	}
}

function outputOf(failure: unknown) {
	const { code, stdout, stderr } = { code: 0, stdout: "", stderr: "", ...Object(failure) };
	return { code, stdout: `${stdout}`, stderr: `${stderr}` };
}

function lastLines(text: string): string {
	return text.trim().split("\n").slice(-3).join("\n");
}
