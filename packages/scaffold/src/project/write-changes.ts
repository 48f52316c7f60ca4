import {
	chmod,
	type FileHandle,
	mkdir,
	open,
	readFile,
	rename,
	rm,
	rmdir,
	stat,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { ScaffoldError } from "../scaffold-error.ts";

/** A file to create. */
export interface NewFile {
	/** From the root of the project, with slashes. */
	readonly path: string;
	readonly content: string;
}

/** A file to change. */
export interface EditedFile {
	readonly path: string;
	/** Its new text; `undefined` if it must be left as it is. */
	readonly edit: (text: string) => string | undefined;
}

/** What was written. */
export interface Written {
	/** Whether the edited file was changed. */
	readonly edited: boolean;
}

/** What is removed if a later step fails, in reverse order. */
interface Undo {
	/** From the root of the project. */
	readonly path: string;
	readonly remove: () => Promise<void>;
}

/**
 * Creates files and changes one, all or nothing: if a step fails, what the earlier ones created is removed.
 * Never overwrites. Two callers at once can't lose an edit: the new text is written beside the file first, under
 * a name that only one of them can create.
 *
 * @throws ScaffoldError if one of the files exists or can't be written, or another caller is changing the edited one.
 * It names the paths that could not be removed.
 */
export async function writeChanges(
	root: string,
	files: readonly NewFile[],
	edited: EditedFile,
): Promise<Written> {
	const undo: Undo[] = [];
	try {
		await refuseExisting(root, files);
		const finishEdit = await startEdit(root, edited, undo);
		for (const { path, content } of files) {
			await create(root, path, content, undo);
		}
		await finishEdit?.();
		return { edited: finishEdit !== undefined };
	} catch (error) {
		const left = await removeAll(undo);
		if (error instanceof ScaffoldError && left.length === 0) {
			throw error;
		}
		const reason = error instanceof Error ? error.message : String(error);
		const rest = left.length === 0 ? "nothing was written" : `remove ${left.join(", ")} by hand`;
		throw new ScaffoldError(`${reason}: ${rest}`, { cause: error });
	}
}

/** Removes what was created, and returns the paths of what could not be removed. */
async function removeAll(undo: readonly Undo[]): Promise<readonly string[]> {
	const left: string[] = [];
	for (const { path, remove } of undo.toReversed()) {
		await remove().catch((error: unknown) => {
			// Somebody else has put a file into a new folder: it stays.
			if (!hasCode(error, "ENOTEMPTY")) {
				left.push(path);
			}
		});
	}
	return left;
}

/**
 * Refuses to write files that exist.
 *
 * @throws ScaffoldError that names them.
 */
export async function refuseExisting(root: string, files: readonly NewFile[]): Promise<void> {
	const existing: string[] = [];
	for (const { path } of files) {
		if ((await statOf(join(root, path))) !== undefined) {
			existing.push(path);
		}
	}
	if (existing.length > 0) {
		throw new ScaffoldError(
			`${existing.join(" and ")} ${existing.length === 1 ? "exists" : "exist"} already: nothing was written`,
		);
	}
}

/** Writes the new text beside the file, and returns the function that puts it in its place. */
async function startEdit(
	root: string,
	{ path, edit }: EditedFile,
	undo: Undo[],
): Promise<(() => Promise<void>) | undefined> {
	const target = join(root, path);
	const before = await statOf(target);
	if (before === undefined) {
		return undefined;
	}
	const next = `${path}.new`;
	const handle = await openNew(
		join(root, next),
		`${next} exists: another plinth generate is changing ${path}. Try again, and remove ${next} if none is running`,
	);
	undo.push({ path: next, remove: () => rm(join(root, next), { force: true }) });
	const after = edit(await readFile(target, "utf8"));
	await writeAndClose(handle, after ?? "");
	if (after === undefined) {
		await rm(join(root, next));
		return undefined;
	}
	await chmod(join(root, next), before.mode);
	return () => rename(join(root, next), target);
}

async function create(root: string, path: string, content: string, undo: Undo[]): Promise<void> {
	const folder = dirname(join(root, path));
	const firstNew = await mkdir(folder, { recursive: true });
	if (firstNew !== undefined) {
		undo.push({ path: dirname(path), remove: () => removeEmpty(folder, firstNew) });
	}
	const handle = await openNew(join(root, path), `${path} exists already: nothing was written`);
	undo.push({ path, remove: () => rm(join(root, path), { force: true }) });
	await writeAndClose(handle, content);
}

/** Removes the folders from `folder` up to `first`. Fails at one that is not empty. */
async function removeEmpty(folder: string, first: string): Promise<void> {
	for (let each = folder; each.length >= first.length; each = dirname(each)) {
		await rmdir(each);
	}
}

async function openNew(path: string, ifExists: string): Promise<FileHandle> {
	try {
		return await open(path, "wx");
	} catch (error) {
		throw hasCode(error, "EEXIST") ? new ScaffoldError(ifExists) : error;
	}
}

async function writeAndClose(handle: FileHandle, content: string): Promise<void> {
	try {
		await handle.writeFile(content);
	} finally {
		await handle.close();
	}
}

async function statOf(path: string): Promise<{ readonly mode: number } | undefined> {
	try {
		return await stat(path);
	} catch (error) {
		if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) {
			return undefined;
		}
		throw error;
	}
}

function hasCode(error: unknown, code: string): boolean {
	return error instanceof Error && "code" in error && error.code === code;
}
