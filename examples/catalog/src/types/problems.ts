import { labelProblem } from "@plinth/resource";

/** Checks the name of a port. @throws Error if it is missing or malformed. */
export function checkPortName(path: string, name: string): void {
	if (name === "") {
		throw new Error(`${path} is required`);
	}
	const problem = labelProblem(name);
	if (problem !== undefined) {
		throw new Error(`${path} invalid: "${name}" ${problem}`);
	}
}
