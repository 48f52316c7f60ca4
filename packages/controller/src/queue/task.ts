/** How long a piece of work has been under way, against its limits. */
export type TaskStage = "running" | "reported" | "overdue";

/** One piece of work under way. Its signal is made when it is first asked for: most never are. */
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

	/** Resolves when the work has settled. To be asked for while it is under way. */
	get ended(): Promise<void> {
		this.#ended ??= Promise.withResolvers();
		return this.#ended.promise;
	}

	/** The work has settled. */
	end(): void {
		this.#ended?.resolve();
	}
}
