/*
 * What tests import as fast-check: with one seed for all runs, so that a change fails because of what it
 * changed. `PLINTH_SEED` sets another seed, and `PLINTH_RUNS` the number of runs of each `fc.assert`. `fc.check`
 * keeps its runs: it is for planted faults, which must be found.
 */

import { runsOr, seedOr } from "@plinth/test-support/seeds";
import * as fastCheck from "../node_modules/fast-check/lib/fast-check.js";

const { PLINTH_SEED, PLINTH_RUNS } = process.env;
const chosen = {
	...(PLINTH_SEED && { seed: seedOr(1) }),
	...(PLINTH_RUNS && { numRuns: runsOr(1) }),
};
fastCheck.configureGlobal({ seed: seedOr(1) });

/** As that of fast-check, but what the environment chooses wins over the parameters of the test. */
export const assert = (<Ts>(
	property: fastCheck.IRawProperty<Ts>,
	parameters?: fastCheck.Parameters<Ts>,
) => fastCheck.assert(property, { ...parameters, ...chosen })) as typeof fastCheck.assert;

export * from "../node_modules/fast-check/lib/fast-check.js";

const seeded: typeof fastCheck.default = { ...fastCheck.default, assert };
// biome-ignore lint/style/noDefaultExport: as fast-check has one.
export default seeded;
