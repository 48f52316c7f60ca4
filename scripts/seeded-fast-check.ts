/*
 * What tests import as fast-check: with one seed for all runs, so that a change fails because of what it
 * changed. `PLINTH_SEED` sets another one.
 */
import { configureGlobal } from "../node_modules/fast-check/lib/fast-check.js";

export * from "../node_modules/fast-check/lib/fast-check.js";
export { default } from "../node_modules/fast-check/lib/fast-check.js";

const seed = Number(process.env.PLINTH_SEED ?? 1);
if (!Number.isInteger(seed)) {
	throw new Error(`PLINTH_SEED must be an integer, got: "${process.env.PLINTH_SEED}"`);
}
configureGlobal({ seed });
