/** Which time limits a task has exceeded. */
export type TaskStage = "running" | "reported" | "overdue";

/** One run of some work for a key. Its signal is created on first access: most are never needed. */
export class Task {
	readonly key: string;
	/** When it was started, on the monotonic clock. */
	startedMs = 0;
	/** Set by `LimitSweep`. */
	stage: TaskStage = "running";
	#controller: AbortController | undefined;
	#aborted: { readonly reason: unknown } | undefined;
	#ended: PromiseWithResolvers<void> | undefined;

	constructor(key: string) {
		this.key = key;
	}

	/** Aborts when the work should end early. */
	get signal(): AbortSignal {
		if (this.#controller === undefined) {
			this.#controller = new AbortController();
			if (this.#aborted !== undefined) {
				this.#controller.abort(this.#aborted.reason);
			}
		}
		return this.#controller.signal;
	}

	get aborted(): boolean {
		return this.#aborted !== undefined;
	}

	abort(reason: unknown): void {
		if (this.#aborted === undefined) {
			this.#aborted = { reason };
			this.#controller?.abort(reason);
		}
	}

	/** Resolves when the work has settled. Must be read before that. */
	get ended(): Promise<void> {
		this.#ended ??= Promise.withResolvers();
		return this.#ended.promise;
	}

	/** The work has settled. */
	end(): void {
		this.#ended?.resolve();
	}
}
