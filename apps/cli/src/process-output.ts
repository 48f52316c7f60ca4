import { type OutputFailure, StandardOutput } from "@plinth/runtime/standard-output";
import { exitCodes } from "./exit-codes.ts";

/**
 * Standard output and standard error of this process. A command ends when its output can't be written: quietly if the
 * reader of the pipe has exited, as in `plinth list … | head`. One that changes something goes on without printing.
 */
export class ProcessOutput {
	readonly #out = new StandardOutput((failure) => this.#end(failure));
	#err: NodeJS.WriteStream | undefined;
	#finishesUnread = false;

	out(text: string): void {
		this.#out.write(text);
	}

	err(text: string): void {
		if (this.#err === undefined) {
			this.#err = process.stderr;
			// There is nowhere to report it to, and the exit code tells the result.
			this.#err.on("error", () => {});
		}
		this.#err.write(text);
	}

	/** From now on, the command goes on if its output can't be written. */
	finishUnread(): void {
		this.#finishesUnread = true;
	}

	#end({ reason, isUnread }: OutputFailure): void {
		if (!isUnread) {
			this.err(`plinth: can't write to standard output: ${reason}\n`);
			process.exitCode ||= exitCodes.failed;
		}
		if (!this.#finishesUnread) {
			process.exit(isUnread ? exitCodes.ok : exitCodes.failed);
		}
	}
}
