/**
 * Plants a fault in a process: `node --import ./plant-fault.fixture.ts …`, with its name in `FAULT`. The process loads
 * another `fault-points.ts`, and all other files as they are.
 */
import { registerHooks } from "node:module";
import { isFaultName } from "./mutants.fixture.ts";

const planted = process.env.FAULT ?? "";
if (!isFaultName(planted)) {
	throw new Error(`FAULT must name a fault of mutants.fixture.ts, got "${planted}"`);
}

const faultPoints = new URL("../fault-points.ts", import.meta.url).href;
registerHooks({
	load: (url, context, nextLoad) =>
		url === faultPoints
			? {
					format: "module",
					source: `export const isPlanted = (fault) => fault === ${JSON.stringify(planted)};`,
					shortCircuit: true,
				}
			: nextLoad(url, context),
});
