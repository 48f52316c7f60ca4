/** Lets callers wait until the state has reached a revision. */
export class RevisionGate {
	#revision = 0;
	readonly #waiting = new Set<{ readonly revision: number; readonly pass: () => void }>();

	/** The state has reached the revision. */
	advance(revision: number): void {
		this.#revision = revision;
		for (const waiter of this.#waiting) {
			if (waiter.revision <= revision) {
				this.#waiting.delete(waiter);
				waiter.pass();
			}
		}
	}

	/** Resolves when the state has reached the revision; rejects with the signal's reason if it aborts first. */
	reached(revision: number, signal: AbortSignal): Promise<void> {
		if (revision <= this.#revision) {
			return Promise.resolve();
		}
		return new Promise((resolve, reject) => {
			const onAbort = () => {
				this.#waiting.delete(waiter);
				reject(signal.reason);
			};
			const pass = () => {
				signal.removeEventListener("abort", onAbort);
				resolve();
			};
			const waiter = { revision, pass };
			if (signal.aborted) {
				reject(signal.reason);
				return;
			}
			this.#waiting.add(waiter);
			signal.addEventListener("abort", onAbort, { once: true });
		});
	}
}
