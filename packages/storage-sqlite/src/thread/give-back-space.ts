import type { FreeSpace } from "../file/free-space.ts";
import { isDiskFull } from "../file/sqlite-failure.ts";

/** The maximum of pages per step, 1 MiB, and the fewest. */
export const mostPages = 256;
const fewestPages = 16;
/** A step that takes longer is followed by one of half as many pages, in milliseconds. */
const longStepMs = 10;

/** How long after a write it looks whether there is space to give back. */
const lookAfterMs = 200;
/** The pause after a step, as a multiple of the time that it took: if there were no writes meanwhile, or some. */
const idlePause = 1;
const busyPause = 19;
/** The pause after a step for which the disk had no room. */
const fullDiskPauseMs = 60_000;

/** The dependencies of giving space back. */
export interface GiveBackContext {
	/** The free pages of the open file; `undefined` while none is open. */
	space(): Pick<FreeSpace, "hasTail" | "giveBack" | "checkpoint"> | undefined;
	/** Calls back once, after a delay in milliseconds; returns what cancels it. */
	schedule(delayMs: number, run: () => void): () => void;
	/** A monotonic clock, in milliseconds. */
	now(): number;
	/** Called after each step, whose failure is one of the step. */
	stepped(): void;
	/**
	 * A step failed for another reason than a full disk: the content of the disk is unknown, as after a failed write, and
	 * nothing more must be written.
	 */
	failed(failure: unknown): void;
}

/**
 * Gives free pages back between the writes of the thread that owns the file:
 *
 * ```
 *   writes   ▌▌▌ ▌▌▌▌ ▌        ▌ ▌
 *   steps             ░ ░ ░ ░ ░     ░   ░ ░ ░ ◆ checkpoint, if nothing was written since the last step
 * ```
 *
 * A write waits for one step at most, whose size follows from the time that steps take. If there were no writes since
 * the last step, steps take half of the thread's time; otherwise a twentieth, so that a storage that is never idle gives
 * space back too.
 */
export class GiveBackSpace {
	readonly #context: GiveBackContext;
	#cancel: (() => void) | undefined;
	#hasWrites = false;
	/** Whether pages were given back since the last checkpoint, by this process or by one that was killed. */
	#hasSteps = false;
	#pages = mostPages;
	#hasFailed = false;

	constructor(context: GiveBackContext) {
		this.#context = context;
	}

	/** The file was opened, perhaps after a process that was killed before it gave everything back. */
	opened(): void {
		this.#hasSteps = this.#context.space()?.hasTail ?? false;
		this.#plan(lookAfterMs);
	}

	/** Rows were written. */
	written(): void {
		this.#hasWrites = true;
		this.#plan(lookAfterMs);
	}

	/** Stops, until the next write. */
	stop(): void {
		this.#cancel?.();
		this.#cancel = undefined;
	}

	#plan(delayMs: number): void {
		this.#cancel ??= this.#context.schedule(delayMs, () => {
			this.#cancel = undefined;
			try {
				this.#step();
			} catch (error) {
				if (isDiskFull(error)) {
					this.#plan(fullDiskPauseMs);
				} else {
					this.#hasFailed = true;
					this.#context.failed(error);
				}
			}
		});
	}

	#step(): void {
		const space = this.#context.space();
		if (space === undefined || this.#hasFailed) {
			return;
		}
		const hadWrites = this.#hasWrites;
		this.#hasWrites = false;
		const startMs = this.#context.now();
		if (space.giveBack(this.#pages) > 0) {
			this.#context.stepped();
			const tookMs = Math.max(1, this.#context.now() - startMs);
			this.#pages =
				tookMs > longStepMs
					? Math.max(fewestPages, this.#pages / 2)
					: Math.min(mostPages, this.#pages * 2);
			this.#hasSteps = true;
			this.#plan(tookMs * (hadWrites ? busyPause : idlePause));
		} else if (this.#hasSteps && hadWrites) {
			this.#plan(lookAfterMs);
		} else if (this.#hasSteps) {
			this.#hasSteps = false;
			space.checkpoint();
		}
	}
}
