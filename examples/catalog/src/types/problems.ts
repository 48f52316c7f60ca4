import { labelProblem } from "@plinth/resource";

/** @throws Error where the name of a port, at the given path, is missing or malformed. */
export function checkPortName(path: string, name: string): void {
	if (name === "") {
		throw new Error(`${path} is required`);
	}
	const problem = labelProblem(name);
	if (problem !== undefined) {
		throw new Error(`${path} invalid: "${name}" ${problem}`);
	}
}
