import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Clock, sleep } from "@plinth/runtime";

/** SQLite's result code for a file that is locked. */
const busy = 5;

/** The delay between two attempts. */
const retryMs = 25;

/**
 * Waits until no other process generates code in a project, and prevents others from doing so until the lock is
 * disposed of. It is a lock of the operating system, through SQLite, which supports every platform: it ends with the
 * process, and the file that remains has no meaning.
 *
 * @param folder where the file of the lock is: the same for all processes.
 * @throws errors of the file system; the signal's reason.
 */
export async function lockGeneration(
	folder: string,
	clock: Clock,
	signal: AbortSignal,
): Promise<Disposable> {
	const lock = new DatabaseSync(join(folder, "generate.lock"), { timeout: 0 });
	try {
		while (!hasBegun(lock)) {
			await sleep(clock, retryMs, signal);
		}
		return { [Symbol.dispose]: () => lock.close() };
	} catch (error) {
		lock.close();
		throw error;
	}
}

function hasBegun(lock: DatabaseSync): boolean {
	try {
		// Nothing is ever written to it, so that no journal is needed.
		lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
		return true;
	} catch (error) {
		if (error instanceof Error && "errcode" in error && error.errcode === busy) {
			return false;
		}
		throw error;
	}
}
