import { type ChildProcess, spawn } from "node:child_process";
import { constants, setPriority } from "node:os";
import type { Logger } from "@plinth/runtime";

/** The build of a console that was not built. */
export interface ConsoleBuild {
	/** What has come of it. It `succeeded` if the program did; the files tell whether that helped. */
	readonly state: "idle" | "running" | "succeeded" | "failed";
	/** The end of what a failed build has written. */
	readonly output: string;
	/** Starts the build, unless it was started before: a build that fails is not repeated. */
	start(program: string): void;
	/** Ends the build if it runs. */
	stop(): void;
}

/** How much of the output of a build is kept, in characters. */
const keptOutput = 4_000;

/**
 * Builds the console in a process of its own with the lowest priority: the server neither waits for it nor depends on it.
 */
export class ConsoleBuildProcess implements ConsoleBuild {
	readonly #logger: Logger;
	#state: ConsoleBuild["state"] = "idle";
	#output = "";
	#process: ChildProcess | undefined;

	constructor(logger: Logger) {
		this.#logger = logger;
	}

	get state(): ConsoleBuild["state"] {
		return this.#state;
	}

	get output(): string {
		return this.#output;
	}

	start(program: string): void {
		if (this.#state !== "idle") {
			return;
		}
		this.#state = "running";
		this.#logger.info({ program }, "building the console");
		const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "pipe"] });
		this.#process = child;
		lowerPriority(child);
		for (const stream of [child.stdout, child.stderr]) {
			stream.setEncoding("utf8");
			stream.on("data", (text: string) => {
				this.#output = (this.#output + text).slice(-keptOutput);
			});
		}
		child.on("error", (error) => this.#ended(error.message));
		child.on("close", (code, signal) =>
			this.#ended(
				code === 0 ? undefined : `it ended with ${signal ?? `code ${code}`}`,
				// Ctrl-C interrupts it too, before the server stops it.
				signal === "SIGTERM" || signal === "SIGINT",
			),
		);
	}

	stop(): void {
		this.#process?.kill();
	}

	#ended(failure: string | undefined, isStopped = false): void {
		if (this.#state !== "running") {
			return;
		}
		this.#process = undefined;
		this.#state = failure === undefined ? "succeeded" : "failed";
		if (failure === undefined) {
			this.#logger.info({}, "the console was built");
		} else {
			this.#output += `\n${failure}`;
			if (isStopped) {
				this.#logger.info({}, "the build of the console was stopped");
				return;
			}
			this.#logger.warn({ output: this.#output }, "the console could not be built");
		}
	}
}

/** A build is never more important than what the server does. */
function lowerPriority({ pid }: ChildProcess): void {
	try {
		if (pid !== undefined) {
			setPriority(pid, constants.priority.PRIORITY_LOW);
		}
	} catch {
		// It has ended, or the system has no priorities.
	}
}
