import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { addToModule, linesFor, type ModuleAddition } from "../module-file/edit-module.ts";
import type { Project } from "./find-project.ts";
import { type NewFile, refuseExisting, writeChanges } from "./write-changes.ts";

/** The module of a project. */
const moduleFile = "src/module.ts";

/** What was generated. Paths are from the root, with slashes. */
export interface Generated {
	/** The folder of the project. */
	readonly root: string;
	/** The new files. */
	readonly created: readonly NewFile[];
	/** The files that were changed. */
	readonly changed: readonly string[];
	/**
	 * What is added to `src/module.ts`. If that was not changed, because it does not have the expected form, a person adds
	 * it.
	 */
	readonly lines: readonly string[];
	/** What to do next, in order. */
	readonly next: readonly string[];
	/** Whether nothing was written. */
	readonly dryRun: boolean;
}

/** What is to be generated. */
export interface Plan {
	readonly files: readonly NewFile[];
	readonly addition: ModuleAddition;
	readonly next: readonly string[];
	readonly dryRun: boolean;
}

/**
 * Writes the files of a plan, and adds what they export to the module: all or nothing.
 *
 * @throws ScaffoldError if one of the files exists.
 */
export async function generate({ root }: Project, plan: Plan): Promise<Generated> {
	const { files, addition, next, dryRun } = plan;
	const edit = (text: string) => addToModule(text, addition);
	let edited: boolean;
	if (dryRun) {
		await refuseExisting(root, files);
		edited = edit(await readFile(join(root, moduleFile), "utf8").catch(() => "")) !== undefined;
	} else {
		({ edited } = await writeChanges(root, files, { path: moduleFile, edit }));
	}
	return {
		...{ root, created: files, dryRun },
		changed: edited ? [moduleFile] : [],
		lines: linesFor(addition),
		next,
	};
}
