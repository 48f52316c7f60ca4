import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ScaffoldError } from "../scaffold-error.ts";
import type { ProjectFile } from "./template.ts";

/**
 * Writes files that do not exist yet, and creates their folders. If that fails, or if the signal aborts, it deletes what
 * it has created.
 *
 * @param folder - an absolute path.
 * @throws ScaffoldError with the reason, and with the paths that could not be deleted.
 */
export async function writeNewFiles(
	folder: string,
	files: readonly ProjectFile[],
	signal: AbortSignal,
): Promise<void> {
	/** None of these existed before. */
	const created: string[] = [];
	try {
		for (const { path, content } of files) {
			signal.throwIfAborted();
			const file = join(folder, path);
			const firstFolder = await mkdir(dirname(file), { recursive: true });
			if (firstFolder !== undefined) {
				created.push(firstFolder);
			}
			await writeFile(file, content, { flag: "wx" });
			created.push(file);
		}
	} catch (error) {
		const left = await deleteAll(created);
		const reason = signal.aborted ? "interrupted" : reasonOf(error);
		const rest = left.length === 0 ? "nothing was created" : `delete by hand: ${left.join(", ")}`;
		throw new ScaffoldError(`${reason}: ${rest}`, { cause: error });
	}
}

/** Deletes the paths, the newest first. Returns those that could not be deleted. */
async function deleteAll(paths: readonly string[]): Promise<readonly string[]> {
	const left: string[] = [];
	for (const path of paths.toReversed()) {
		await rm(path, { recursive: true, force: true }).catch(() => left.push(path));
	}
	return left;
}

function reasonOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}
