/*
 * What all other modules import as fast-check (vitest.config.ts): properties start from the seed of the test
 * run, and run as often as its length says.
 */
import fastCheck from "fast-check";
import { runs, seed } from "./seeds.ts";

/** fast-check's own number of runs. */
const usual = 100;

fastCheck.configureGlobal({ seed });

function withLength<Parameters extends { readonly numRuns?: number }>(
	parameters: Parameters | undefined,
) {
	return { ...parameters, numRuns: runs(parameters?.numRuns ?? usual) };
}

const assert = new Proxy(fastCheck.assert, {
	apply: (target, self, [property, parameters]) =>
		Reflect.apply(target, self, [property, withLength(parameters)]),
});

// biome-ignore lint/style/noDefaultExport: fast-check has one, which tests import.
export default { ...fastCheck, assert };
