import { setImmediate } from "node:timers/promises";
import type { RowWrite } from "../file/row-table.ts";
import type { StorageReader } from "../file/storage-reader.ts";
import type { NewStorageFile } from "./new-storage-file.ts";

/** How a long job tells of itself, and is stopped. */
export interface Steps {
	/** Checked between the steps. */
	readonly signal: AbortSignal;
	/** Called after each step, with the resources that are done, and how many there are. */
	progress(resources: number, of: number): void;
}

/** Rows of a step. */
const stepRows = 512;

/**
 * Copies all rows of a file, which is checked whole on the way, and releases the thread between
 * steps.
 *
 * @param revision What the copies are said to be of; if absent, of what the originals are.
 * @throws StorageFileError; the signal's reason.
 */
export async function copyRows(
	from: StorageReader,
	to: NewStorageFile,
	{ signal, progress }: Steps,
	revision?: number,
): Promise<void> {
	let rows: RowWrite[] = [];
	const step = async () => {
		to.write(rows);
		rows = [];
		progress(to.tally.resources, from.head.resources);
		await setImmediate();
		signal.throwIfAborted();
	};
	signal.throwIfAborted();
	for (const row of from.rows()) {
		rows.push(revision === undefined ? row : { ...row, revision });
		if (rows.length >= stepRows) {
			await step();
		}
	}
	await step();
}
