import { setImmediate } from "node:timers/promises";
import type { RowWrite } from "../file/row-table.ts";
import type { StorageReader } from "../file/storage-reader.ts";
import type { NewStorageFile } from "./new-storage-file.ts";

/** Reports the progress of a long job, and stops it. */
export interface Steps {
	/** Checked between steps. */
	readonly signal: AbortSignal;
	/** Called after each step, with the copied resources and the total. */
	progress(resources: number, total: number): void;
}

/** The number of rows per step. */
const stepRows = 512;

/**
 * Copies all rows of a file, checks the whole file while doing so, and yields to the event loop between
 * steps.
 *
 * @param revision The revision of the copies; if absent, they keep their own.
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
