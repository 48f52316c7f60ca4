import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Mutant } from "./mutants.fixture.ts";

const packageFolder = fileURLToPath(new URL("../..", import.meta.url));

/** The result of simulating a mutant. */
export interface Verdict {
	/** Whether the simulation has found a broken promise. */
	readonly isFound: boolean;
	/** The seed that found it, if the one that is recorded for the mutant did not. */
	readonly otherSeed?: number;
	/** The last lines of its output. */
	readonly output: string;
}

/**
 * Copies the sources into a folder of the package that git ignores, applies the patch to the copy, and runs the
 * simulation of the copy: first with the mutant's own seed, then with those below `seeds` until one finds a violation.
 *
 * @throws Error if the text that the patch replaces does not occur exactly once.
 */
export async function runMutant(mutant: Mutant, seeds: number): Promise<Verdict> {
	const folder = join(packageFolder, ".mutants", mutant.name.toLowerCase().replaceAll(" ", "-"));
	await rm(folder, { recursive: true, force: true });
	await mkdir(folder, { recursive: true });
	try {
		// Without tests: a concurrent test run of the package must not find them here.
		const filter = (path: string) => !path.endsWith(".test.ts");
		await cp(join(packageFolder, "src"), join(folder, "src"), { recursive: true, filter });
		await symlink(join(packageFolder, "testdata"), join(folder, "testdata"));
		const file = join(folder, "src", mutant.file);
		await writeFile(file, mutated(mutant, await readFile(file, "utf8")));
		const verdict = await run(folder, mutant.seed, 1);
		if (verdict.isFound) {
			return verdict;
		}
		const search = await run(folder, 0, seeds);
		const otherSeed = /^seed (\d+): promise /m.exec(search.output)?.[1];
		return otherSeed === undefined ? search : { ...search, otherSeed: Number(otherSeed) };
	} finally {
		await rm(folder, { recursive: true, force: true });
	}
}

/** The patched source. */
export function mutated({ name, file, find, replace }: Mutant, source: string): string {
	const occurrences = source.split(find).length - 1;
	if (occurrences !== 1) {
		throw new Error(`"${name}": its text occurs ${occurrences} times in ${file}, not once`);
	}
	return source.replace(find, () => replace);
}

async function run(folder: string, from: number, seeds: number): Promise<Verdict> {
	const main = join(folder, "src/simulation/main.ts");
	const args = [main, "--from", `${from}`, "--runs", `${seeds}`, "--max-failures", "1"];
	try {
		const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder });
		return { isFound: false, output: lastLines(stdout) };
	} catch (failure) {
		const { code, stdout, stderr } = outputOf(failure);
		const isFound = code === 1 && stdout.includes(": promise ");
		return { isFound, output: lastLines(isFound ? stdout : `${stdout}${stderr}`) };
	}
}

function outputOf(failure: unknown) {
	const { code, stdout, stderr } = { code: 0, stdout: "", stderr: "", ...Object(failure) };
	return { code, stdout: `${stdout}`, stderr: `${stderr}` };
}

function lastLines(text: string): string {
	return text.trim().split("\n").slice(-3).join("\n");
}
