import { parseArgs } from "node:util";
import type { SimulationOptions } from "./simulation-context.fixture.ts";

/**
 * Reads the arguments of the simulation; `main.ts --help` explains them.
 *
 * @throws Error if one is unknown or no whole number.
 */
export function readArguments(args: readonly string[]) {
	const { values } = parseArgs({
		args: [...args],
		options: {
			runs: { type: "string", default: "100" },
			from: { type: "string", default: "0" },
			seed: { type: "string" },
			trace: { type: "boolean", default: false },
			losses: { type: "string", default: "0" },
			"restore-meta": { type: "boolean", default: false },
			"switch-schemas": { type: "boolean", default: false },
			"max-failures": { type: "string", default: "10" },
			help: { type: "boolean", default: false },
		},
	});
	function numberOf(option: "from" | "runs" | "seed" | "losses" | "max-failures"): number {
		const text = values[option] ?? "";
		const number = Number(text);
		if (text === "" || !Number.isSafeInteger(number) || number < 0) {
			throw new Error(`--${option} must be a whole number, got "${text}": see --help`);
		}
		return number;
	}
	const options: SimulationOptions = {
		isTracing: values.trace,
		losses: numberOf("losses"),
		restoresMeta: values["restore-meta"],
		switchesSchemas: values["switch-schemas"],
	};
	return { values, numberOf, options };
}
