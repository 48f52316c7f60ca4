import { ConnectError } from "@connectrpc/connect";
import { Backoff } from "@plinth/runtime";
import type { ConstraintContext } from "../constraint-context.ts";
import { establishWithSuccessor } from "../succession.ts";

/** How long a report that failed waits before it is tried again, at first and at most. */
const again = { baseMs: 500, maxMs: 30_000 } as const;

/** Establishes anew, with each successor that comes up, what was established with its predecessor. */
export class SuccessorReports {
	readonly #context: ConstraintContext;
	/** By uid of the successor: under way, or done. */
	readonly #begun = new Map<string, Promise<void>>();

	constructor(context: ConstraintContext) {
		this.#context = context;
	}

	/** Begins with the successors that are known now and were not before. */
	begin(signal: AbortSignal): void {
		const { environment } = this.#context;
		const { self } = environment;
		for (const { uid, predecessorUid, disabled } of environment.deployments()) {
			if (predecessorUid !== "" && uid !== self.uid && !disabled && !this.#begun.has(uid)) {
				this.#begun.set(uid, this.#report(uid, signal));
			}
		}
	}

	/** Resolves when nothing is under way any more, after the signal has aborted. */
	async ended(): Promise<void> {
		await Promise.all(this.#begun.values());
	}

	/** Tries until it is done, the signal aborts, or the successor is not known any more. */
	async #report(uid: string, signal: AbortSignal): Promise<void> {
		const { environment, runtime, logger } = this.#context;
		const backoff = new Backoff({ ...again, clock: runtime.clock });
		while (!signal.aborted) {
			const successor = environment.deployments().find((each) => each.uid === uid);
			if (successor === undefined) {
				this.#begun.delete(uid);
				return;
			}
			try {
				await establishWithSuccessor(this.#context, successor, signal);
				return;
			} catch (failure) {
				logger.debug(
					{ err: ConnectError.from(failure), successor: uid },
					"references could not be established with a successor",
				);
			}
			await backoff.wait(signal).catch(() => {});
		}
	}
}
