import { ConnectError } from "@connectrpc/connect";
import { Backoff, type Logger, type Runtime } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";

const again = { baseMs: 250, maxMs: 10_000 } as const;

/** Steps that fail while a storage or another deployment is down, and are tried until they succeed. */
export class RetriedSteps {
	/** The last problem of each step that is tried again, by what it does. */
	readonly problems = new Map<string, string>();
	readonly #runtime: Runtime;
	readonly #logger: Logger;

	constructor(runtime: Runtime, logger: Logger) {
		this.#runtime = runtime;
		this.#logger = logger;
	}

	/**
	 * Tries with backoff until `run` succeeds.
	 *
	 * @param what - completes "could not …".
	 * @throws the reason of the signal when it aborts.
	 */
	async untilDone(what: string, signal: AbortSignal, run: () => Promise<void>): Promise<void> {
		const { clock, random } = this.#runtime;
		const backoff = new Backoff({ ...again, clock, random });
		try {
			for (;;) {
				signal.throwIfAborted();
				try {
					await run();
					return;
				} catch (failure) {
					signal.throwIfAborted();
					const { rawMessage } = ConnectError.from(failure);
					this.problems.set(what, rawMessage);
					this.#logger.warn({ problem: rawMessage }, `could not ${what}: trying again`);
					if (isPlanted("complete the schema in one attempt")) {
						throw failure;
					}
				}
				await backoff.wait(signal);
			}
		} finally {
			this.problems.delete(what);
		}
	}
}
