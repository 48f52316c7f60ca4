import { fstatSync, writeSync } from "node:fs";
import process from "node:process";
import { getSystemErrorMessage } from "node:util";

/** Why standard output can't be written. */
export interface OutputFailure {
	/** What is wrong, such as `no space left on device`. */
	readonly reason: string;
	/** Whether its reader has exited, as in `plinth list … | head`. */
	readonly isUnread: boolean;
}

/**
 * Standard output of this process. Text is written completely, or the failure is reported: the stream of Node.js drops
 * what does not fit into a file with a size limit.
 */
export class StandardOutput {
	readonly #onFailure: (failure: OutputFailure) => void;
	#isFile: boolean | undefined;
	#hasFailed = false;
	#pending = 0;
	#drained = Promise.withResolvers<void>();

	/** @param onFailure - called once, at the first failure. All later text is dropped. */
	constructor(onFailure: (failure: OutputFailure) => void) {
		this.#onFailure = onFailure;
	}

	/** Writes text. To files, terminals and pipes of POSIX, it is written before this returns. */
	write(text: string): void {
		if (this.#hasFailed) {
			return;
		}
		this.#isFile ??= this.#open();
		if (this.#isFile) {
			this.#writeFile(text);
			return;
		}
		this.#pending += 1;
		process.stdout.write(text, (error) => {
			if (error) {
				this.#fail(error);
			}
			this.#pending -= 1;
			if (this.#pending === 0) {
				this.#drained.resolve();
				this.#drained = Promise.withResolvers();
			}
		});
	}

	/** Resolves when all text was written, or the failure reported. */
	async flush(): Promise<void> {
		while (this.#pending > 0) {
			await this.#drained.promise;
		}
	}

	/** Returns whether it is a file, or a device other than a terminal. */
	#open(): boolean {
		const { stdout } = process;
		// The callbacks of writes report errors. Without a listener, they would also end the process.
		stdout.on("error", () => {});
		// Threads have other streams.
		if (stdout.isTTY || stdout.fd !== 1) {
			return false;
		}
		const stats = fstatSync(stdout.fd);
		return stats.isFile() || stats.isCharacterDevice();
	}

	#writeFile(text: string): void {
		let rest = Buffer.from(text);
		try {
			while (rest.length > 0) {
				rest = rest.subarray(writeSync(process.stdout.fd, rest));
			}
		} catch (error) {
			this.#fail(error);
		}
	}

	#fail(error: unknown): void {
		if (!this.#hasFailed) {
			this.#hasFailed = true;
			this.#onFailure({ reason: reasonOf(error), isUnread: codeOf(error) === "EPIPE" });
		}
	}
}

function reasonOf(error: unknown): string {
	if (!(error instanceof Error)) {
		return String(error);
	}
	return "errno" in error && typeof error.errno === "number"
		? getSystemErrorMessage(error.errno)
		: error.message;
}

function codeOf(error: unknown): unknown {
	return error instanceof Error && "code" in error ? error.code : undefined;
}
