import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Mutant } from "./mutants.fixture.ts";

const packageFolder = fileURLToPath(new URL("../..", import.meta.url));

/** The result of running a mutant. */
export interface Verdict {
	/** Whether a random session has found the fault. */
	readonly isFound: boolean;
	/** The first lines of the error. */
	readonly output: string;
}

/**
 * Copies the sources into a folder of the package that git ignores, plants the fault in the copy, and runs random
 * sessions against it.
 *
 * @throws Error if the text that the fault replaces does not occur exactly once.
 */
export async function runMutant(mutant: Mutant, seeds: number): Promise<Verdict> {
	const folder = join(packageFolder, ".mutants", mutant.name.replaceAll(/[^a-z0-9]+/g, "-"));
	await rm(folder, { recursive: true, force: true });
	await mkdir(folder, { recursive: true });
	try {
		// Without tests: a concurrent test run of the package must not find them here.
		const filter = (path: string) => !path.endsWith(".test.ts");
		await cp(join(packageFolder, "src"), join(folder, "src"), { recursive: true, filter });
		const file = join(folder, "src", mutant.file);
		await writeFile(file, mutated(mutant, await readFile(file, "utf8")));
		const main = join(folder, "src/properties/main.fixture.ts");
		return await promisify(execFile)(process.execPath, [main, `${seeds}`]).then(
			({ stdout }) => ({ isFound: false, output: stdout }),
			({ stderr }) => ({ isFound: true, output: String(stderr) }),
		);
	} finally {
		await rm(folder, { recursive: true, force: true });
	}
}

/** The source with the fault. */
export function mutated({ name, file, find, replace }: Mutant, source: string): string {
	const occurrences = source.split(find).length - 1;
	if (occurrences !== 1) {
		throw new Error(`"${name}": its text occurs ${occurrences} times in ${file}, not once`);
	}
	return source.replace(find, () => replace);
}
