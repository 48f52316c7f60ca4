/**
 * Plants a fault in a process: `node --import ./plant-fault.fixture.ts …`, with the name of a mutant in `MUTANT`.
 * The process loads the patched text of the mutant's file, and all other files as they are.
 */
import { registerHooks } from "node:module";
import { type Mutant, mutants } from "./mutants.fixture.ts";

const chosen = process.env.MUTANT ?? "";
if (chosen !== "") {
	const mutant = mutants.find(({ name }) => name === chosen);
	if (mutant === undefined) {
		throw new Error(`no mutant is called "${chosen}"`);
	}
	const patched = new URL(`../${mutant.file}`, import.meta.url).href;
	registerHooks({
		load(url, context, nextLoad) {
			const loaded = nextLoad(url, context);
			return url === patched
				? { ...loaded, source: mutated(mutant, String(loaded.source)) }
				: loaded;
		},
	});
}

/**
 * The source with the fault.
 *
 * @throws Error if the text that the fault replaces does not occur exactly once.
 */
export function mutated({ name, file, find, replace }: Mutant, source: string): string {
	const occurrences = source.split(find).length - 1;
	if (occurrences !== 1) {
		throw new Error(`"${name}": its text occurs ${occurrences} times in ${file}, not once`);
	}
	return source.replace(find, () => replace);
}
