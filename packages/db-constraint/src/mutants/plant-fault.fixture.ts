/**
 * Lets faults be planted in a process: `node --import ./plant-fault.fixture.ts …`. The process loads another
 * `fault-points.ts`, and all other files as they are. If `FAULT` names a fault, that one is planted.
 */
import { registerHooks } from "node:module";
import { isFaultName } from "./mutants.fixture.ts";
import { planted } from "./planted-fault.fixture.ts";

const { FAULT } = process.env;
if (FAULT !== undefined) {
	if (!isFaultName(FAULT)) {
		throw new Error(`FAULT must name a fault of mutants.fixture.ts, got "${FAULT}"`);
	}
	planted.fault = FAULT;
}

const faultPoints = new URL("../fault-points.ts", import.meta.url).href;
const plantedFault = new URL("./planted-fault.fixture.ts", import.meta.url).href;
registerHooks({
	load: (url, context, nextLoad) =>
		url === faultPoints
			? {
					format: "module",
					source: `
						import { planted } from ${JSON.stringify(plantedFault)};
						export const isPlanted = (fault) => fault === planted.fault;
					`,
					shortCircuit: true,
				}
			: nextLoad(url, context),
});
