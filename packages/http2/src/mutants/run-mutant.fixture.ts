import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Mutant } from "./mutants.fixture.ts";

const plantFault = new URL("./plant-fault.fixture.ts", import.meta.url).href;
const sessions = fileURLToPath(new URL("../properties/main.fixture.ts", import.meta.url));

/** The result of running a mutant. */
export interface Verdict {
	/** Whether a random session has found the fault. */
	readonly isFound: boolean;
	/** The first lines of the error. */
	readonly output: string;
}

/** Runs random sessions in a process with the fault, or without one. */
export async function runMutant(mutant: Mutant | undefined, seeds: number): Promise<Verdict> {
	const args = ["--import", plantFault, sessions, `${seeds}`];
	const env = { ...process.env, MUTANT: mutant?.name ?? "" };
	return await promisify(execFile)(process.execPath, args, { env }).then(
		({ stdout }) => ({ isFound: false, output: stdout }),
		({ stderr }) => ({ isFound: true, output: String(stderr) }),
	);
}
