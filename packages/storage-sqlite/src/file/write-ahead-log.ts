import { closeSync, openSync, readSync } from "node:fs";

/** The sizes of the headers of the file and of each frame, which precedes its page. */
const fileHeaderBytes = 32;
const frameHeaderBytes = 24;
/** Where the salts of the log are in these headers. */
const salts = { ofFile: 16, ofFrame: 8, bytes: 8 };

/**
 * The write-ahead log of a storage that this process has open, as far as it says how long it is. The size of the file does
 * not: once all of the log was moved into the main file, SQLite overwrites the log from its begin, with other salts.
 *
 * ```
 *   file header (salts B) │ frame 1 (B) │ frame 2 (B) │ frame 3 (A) │ frame 4 (A)
 *                                                     └ from the time before: the log has 2 frames
 * ```
 */
export class WriteAheadLog {
	readonly #path: string;
	readonly #pageBytes: number;
	readonly #header = Buffer.alloc(fileHeaderBytes);
	readonly #frame = Buffer.alloc(frameHeaderBytes);
	/** Opened on demand: SQLite creates the file with the first write. */
	#file: number | undefined;

	/** @param path - the path of the main file. */
	constructor(path: string, pageBytes: number) {
		this.#path = `${path}-wal`;
		this.#pageBytes = pageBytes;
	}

	/**
	 * Whether the log has at least so many frames: one for each page that a transaction has changed. Two short reads; call it
	 * after a write.
	 */
	hasFrames(count: number): boolean {
		this.#file ??= openSync(this.#path, "r");
		const at = fileHeaderBytes + (count - 1) * (frameHeaderBytes + this.#pageBytes);
		return (
			readSync(this.#file, this.#frame, { position: at }) === frameHeaderBytes &&
			readSync(this.#file, this.#header, { position: 0 }) === fileHeaderBytes &&
			this.#frame.compare(
				this.#header,
				salts.ofFile,
				salts.ofFile + salts.bytes,
				salts.ofFrame,
				salts.ofFrame + salts.bytes,
			) === 0
		);
	}

	close(): void {
		if (this.#file !== undefined) {
			closeSync(this.#file);
		}
	}
}
