/** What a client may have just sent. */
export type Moment = "write" | "delete";

/** Tells when clients send something, so that a server can be killed while that is under way. */
export class Moments {
	readonly #next: Record<Moment, PromiseWithResolvers<void>> = {
		write: Promise.withResolvers(),
		delete: Promise.withResolvers(),
	};

	/** Resolves when a client has sent that. */
	next(moment: Moment): Promise<void> {
		return this.#next[moment].promise;
	}

	/** A client sends that now. */
	has(moment: Moment): void {
		this.#next[moment].resolve();
		this.#next[moment] = Promise.withResolvers();
	}
}
