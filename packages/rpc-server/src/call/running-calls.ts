import { LinkedList, type ListEntry } from "@plinth/runtime";

/** A call that has not ended. */
export interface RunningCall {
	readonly isStream: boolean;
	/** Aborts the signal of the call; a unary call also ends with the reason, even if its implementation ignores it. */
	shutDown(reason: unknown): void;
}

/** The signals that end the calls of a router. */
export interface CallsEnd {
	/** When it aborts, all calls end with its reason. */
	readonly shutdownSignal: AbortSignal | undefined;
	/** When it aborts, streams end with its reason. */
	readonly streamsEnd: AbortSignal | undefined;
}

/** The running calls of a router. They share one listener per signal. */
export class RunningCalls {
	readonly #end: CallsEnd;
	readonly #calls = new LinkedList<RunningCall>();

	constructor(end: CallsEnd) {
		this.#end = end;
		const { shutdownSignal, streamsEnd } = end;
		streamsEnd?.addEventListener("abort", () => this.#shutDown(streamsEnd, true), { once: true });
		shutdownSignal?.addEventListener("abort", () => this.#shutDown(shutdownSignal, false), {
			once: true,
		});
	}

	/** The signal that has already ended calls of this kind, if any. */
	endOf(call: RunningCall): AbortSignal | undefined {
		const { shutdownSignal, streamsEnd } = this.#end;
		if (shutdownSignal?.aborted) {
			return shutdownSignal;
		}
		return call.isStream && streamsEnd?.aborted ? streamsEnd : undefined;
	}

	/** Adds a call. The returned entry removes it when it has ended. */
	add(call: RunningCall): ListEntry<RunningCall> {
		return this.#calls.append(call);
	}

	#shutDown({ reason }: AbortSignal, onlyStreams: boolean): void {
		for (const call of this.#calls) {
			if (call.isStream || !onlyStreams) {
				call.shutDown(reason);
			}
		}
	}
}
