import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, isAbsolute, join, normalize, relative, sep } from "node:path";
import { parse } from "yaml";

/** Errors of paths that have nothing, or a file instead of a folder. */
const missingCodes: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR"]);

/** What a `buf.gen.yaml` says about the files that are generated. */
export interface GeneratedFolders {
	/** The folders that plugins write to, relative to the project. */
	readonly folders: readonly string[];
	/** Whether files in them that are not generated (any more) are deleted. */
	readonly clean: boolean;
}

/**
 * Reads a `buf.gen.yaml`. Returns `undefined` if it names no folders, or one that is not inside the project: then only
 * buf itself can judge what is written where, and what is deleted.
 */
export function generatedFolders(template: string): GeneratedFolders | undefined {
	let config: unknown;
	try {
		config = parse(template);
	} catch {
		return undefined;
	}
	const { plugins, clean }: { plugins?: unknown; clean?: unknown } = Object(config);
	const folders = (Array.isArray(plugins) ? plugins : []).map((plugin) => {
		const { out }: { out?: unknown } = Object(plugin);
		return typeof out === "string" ? normalize(out) : "";
	});
	return folders.length > 0 && folders.every(isInside)
		? { folders, clean: clean === true }
		: undefined;
}

function isInside(folder: string): boolean {
	return !isAbsolute(folder) && !["", ".", ".."].includes(folder.split(sep)[0] ?? "");
}

/**
 * Makes the generated files of a project those of another folder. Files that are the same are not touched, and others
 * are replaced at once, so that a compiler that reads them meanwhile finds each file complete.
 *
 * @param from a folder on the same file system; its files are moved.
 * @throws errors of the file system; the signal's reason, between two files.
 */
export async function replaceGeneratedFiles(
	from: string,
	project: string,
	{ folders, clean }: GeneratedFolders,
	signal: AbortSignal,
): Promise<void> {
	const generated = new Set(await filesIn(from));
	for (const file of generated) {
		signal.throwIfAborted();
		const target = join(project, file);
		if (!(await haveSameContent(join(from, file), target))) {
			await mkdir(dirname(target), { recursive: true });
			await rename(join(from, file), target);
		}
	}
	for (const folder of clean ? folders : []) {
		for (const file of await filesIn(join(project, folder))) {
			signal.throwIfAborted();
			if (!generated.has(join(folder, file))) {
				await rm(join(project, folder, file), { force: true });
			}
		}
	}
}

/** All files in a folder, relative to it. */
async function filesIn(folder: string): Promise<readonly string[]> {
	try {
		const entries = await readdir(folder, { recursive: true, withFileTypes: true });
		return entries
			.filter((entry) => !entry.isDirectory())
			.map(({ parentPath, name }) => relative(folder, join(parentPath, name)));
	} catch (error) {
		if (isMissing(error)) {
			return [];
		}
		throw error;
	}
}

async function haveSameContent(generated: string, target: string): Promise<boolean> {
	try {
		return (await readFile(generated)).equals(await readFile(target));
	} catch (error) {
		if (isMissing(error)) {
			return false;
		}
		throw error;
	}
}

function isMissing(error: unknown): boolean {
	return error instanceof Error && "code" in error && missingCodes.has(error.code);
}
