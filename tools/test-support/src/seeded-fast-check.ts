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

/** The first code point after the surrogates, and how many of these there are. */
const afterSurrogates = 0xe000;
const surrogates = 0x800;

/**
 * Any code point but surrogates: what fast-check calls "binary". Its own builds a table of all of them, which takes
 * a second and 100 MB in each process.
 */
const codePoint = fastCheck.nat(0x10ffff - surrogates).map(
	(index) =>
		String.fromCodePoint(index < afterSurrogates - surrogates ? index : index + surrogates),
	// With this fast-check also finds texts such as `__proto__` among those it generates.
	(text) => {
		const point = typeof text === "string" ? text.codePointAt(0) : undefined;
		if (point === undefined || text !== String.fromCodePoint(point)) {
			throw new Error("not one code point");
		}
		return point < afterSurrogates ? point : point - surrogates;
	},
);

const string: typeof fastCheck.string = (constraints) =>
	fastCheck.string(
		constraints?.unit === "binary" ? { ...constraints, unit: codePoint } : constraints,
	);

// biome-ignore lint/style/noDefaultExport: fast-check has one, which tests import.
export default { ...fastCheck, assert, string };
