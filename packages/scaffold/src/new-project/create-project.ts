import { readdir } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { ScaffoldError } from "../scaffold-error.ts";
import type { PackageManager } from "./package-manager.ts";
import { checkProjectName } from "./project-name.ts";
import { projectFiles } from "./template.ts";
import { writeNewFiles } from "./write-new-files.ts";

/** What to create. */
export interface ProjectOptions {
	/** The folder of the project, relative to the working directory. Its last part is the name of the project. */
	readonly folder: string;
	/** The package manager that the project is set up for; `npm` by default. */
	readonly packageManager?: PackageManager;
	/** If it aborts while files are written, those are deleted again. */
	readonly signal?: AbortSignal;
}

/** A project that was created. */
export interface NewProject {
	readonly name: string;
	/** The absolute path of its folder. */
	readonly folder: string;
	/** The paths of its files, relative to the folder, with slashes. */
	readonly files: readonly string[];
}

/** What a folder may contain before: it belongs to no project. */
const harmless = new Set([".DS_Store", ".git", ".idea", "Thumbs.db"]);

/** The maximum number of files that a message names. */
const maxNamed = 5;

/**
 * Creates a project with one type, one controller and its test, from the template in this package. It installs nothing.
 * All files are created, or none: it never overwrites a file, and deletes what it has created if it fails.
 *
 * @throws ScaffoldError if the name is not valid, the folder is not empty, or a file can't be written.
 */
export async function createProject(options: ProjectOptions): Promise<NewProject> {
	const { packageManager = "npm", signal = new AbortController().signal } = options;
	const folder = resolve(options.folder);
	const name = basename(folder);
	checkProjectName(name);
	await checkEmpty(folder, options.folder);
	const files = await projectFiles(name, packageManager);
	await writeNewFiles(folder, files, signal);
	return { name, folder, files: files.map(({ path }) => path) };
}

/** @param shown - the folder as it was given. */
async function checkEmpty(folder: string, shown: string): Promise<void> {
	const entries = await entriesOf(folder, shown);
	const found = entries.filter((entry) => !harmless.has(entry)).sort();
	if (found.length > 0) {
		const named = found.slice(0, maxNamed).join(", ");
		const more = found.length > maxNamed ? ` and ${found.length - maxNamed} more` : "";
		throw new ScaffoldError(
			`${shown} is not empty, it contains ${named}${more}: choose another folder, or empty this one`,
		);
	}
}

/** None if the folder does not exist. */
async function entriesOf(folder: string, shown: string): Promise<readonly string[]> {
	try {
		return await readdir(folder);
	} catch (error) {
		const code = error instanceof Error && "code" in error ? error.code : undefined;
		if (code === "ENOENT") {
			return [];
		}
		throw new ScaffoldError(
			code === "ENOTDIR"
				? `${shown} is a file, or is below one: choose another folder`
				: `${shown} can't be read: ${error instanceof Error ? error.message : error}`,
			{ cause: error },
		);
	}
}
