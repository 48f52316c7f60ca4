import type { Clock } from "@plinth/runtime";

/** The longest pause between two turns. */
const longestPauseMs = 1_000;

interface Waiter {
	readonly proceed: () => void;
}

/**
 * Lets large messages be decoded one at a time, so that a number of them that are complete at once do not
 * stop the event loop for as long as all of them take. After each, everything else gets as long as it
 * took before the next one: large messages take half of the event loop at most. Subjects take turns.
 */
export class DecodeTurns {
	readonly #clock: Clock;
	/** By subject; the one whose turn is next comes first. */
	readonly #waiting = new Map<string, Set<Waiter>>();
	#isTaken = false;

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** Resolves when it is the message's turn, or the signal aborts; `undefined` if it is at once. */
	take(subject: string, signal: AbortSignal): Promise<void> | undefined {
		if (!this.#isTaken) {
			this.#begin();
			return undefined;
		}
		if (signal.aborted) {
			return undefined;
		}
		return new Promise((resolve) => {
			const leave = () => {
				this.#remove(subject, waiter);
				resolve();
			};
			const waiter: Waiter = {
				proceed: () => {
					signal.removeEventListener("abort", leave);
					resolve();
				},
			};
			const others = this.#waiting.get(subject);
			if (others === undefined) {
				this.#waiting.set(subject, new Set([waiter]));
			} else {
				others.add(waiter);
			}
			signal.addEventListener("abort", leave, { once: true });
		});
	}

	/** What is decoded now is done with when the event loop comes round. */
	#begin(): void {
		this.#isTaken = true;
		const startMs = this.#clock.monotonic();
		setImmediate(() => {
			const tookMs = this.#clock.monotonic() - startMs;
			if (tookMs < 1) {
				this.#next();
			} else {
				this.#clock.setTimer(Math.min(longestPauseMs, tookMs), () => this.#next());
			}
		});
	}

	#next(): void {
		this.#isTaken = false;
		for (const [subject, waiters] of this.#waiting) {
			for (const waiter of waiters) {
				this.#remove(subject, waiter);
				this.#toTheEnd(subject);
				this.#begin();
				waiter.proceed();
				return;
			}
		}
	}

	#toTheEnd(subject: string): void {
		const waiters = this.#waiting.get(subject);
		if (waiters !== undefined) {
			this.#waiting.delete(subject);
			this.#waiting.set(subject, waiters);
		}
	}

	#remove(subject: string, waiter: Waiter): void {
		const waiters = this.#waiting.get(subject);
		if (waiters?.delete(waiter) && waiters.size === 0) {
			this.#waiting.delete(subject);
		}
	}
}
