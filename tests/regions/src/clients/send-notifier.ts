/** The kinds of calls that are reported. */
export type SentCall = "write" | "delete";

/** Notifies when clients send calls, so that a server can be killed while a call is in progress. */
export class SendNotifier {
	readonly #next: Record<SentCall, PromiseWithResolvers<void>> = {
		write: Promise.withResolvers(),
		delete: Promise.withResolvers(),
	};

	/** Resolves when a client sends the next call of this kind. */
	next(sent: SentCall): Promise<void> {
		return this.#next[sent].promise;
	}

	/** Reports that a client sends a call. */
	notify(sent: SentCall): void {
		this.#next[sent].resolve();
		this.#next[sent] = Promise.withResolvers();
	}
}
