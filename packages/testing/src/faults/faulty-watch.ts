import { Code, ConnectError } from "@connectrpc/connect";
import type { WatchEvent } from "@plinth/proto";
import type { TypeLike } from "@plinth/resource";
import type { BreakableWatch } from "./client-faults.ts";

/** One watch of a faulty client. */
export class FaultyWatch implements BreakableWatch {
	readonly type: TypeLike | undefined;
	broken: ConnectError | undefined;
	swapsNext = false;
	readonly #signal: AbortSignal;
	readonly #waiting = new Set<() => void>();

	constructor(type: TypeLike | undefined, signal: AbortSignal) {
		this.type = type;
		this.#signal = signal;
	}

	wake(): void {
		for (const wake of [...this.#waiting]) {
			wake();
		}
	}

	throwIfBroken(): void {
		if (this.broken !== undefined) {
			throw this.broken;
		}
	}

	/** The promise; rejects if the watch is aborted or broken before. */
	unlessAborted<T>(promise: Promise<T>): Promise<T> {
		return new Promise((resolve, reject) => {
			const stop = () => {
				this.#waiting.delete(look);
				this.#signal.removeEventListener("abort", look);
			};
			const look = () => {
				const reason = this.#signal.aborted
					? ConnectError.from(this.#signal.reason, Code.Canceled)
					: this.broken;
				if (reason !== undefined) {
					stop();
					reject(reason);
				}
			};
			this.#waiting.add(look);
			this.#signal.addEventListener("abort", look, { once: true });
			promise.finally(stop).then(resolve, reject);
			look();
		});
	}

	/** The events, until the watch is aborted or broken; swaps two of them if requested. */
	async *events(source: AsyncIterable<WatchEvent>): AsyncGenerator<WatchEvent> {
		const events = source[Symbol.asyncIterator]();
		const next = async () => this.unlessAborted(events.next());
		let result = await next();
		while (!result.done) {
			if (this.swapsNext && result.value.event.case !== "endOfSnapshot") {
				const second = await next();
				if (!second.done) {
					this.swapsNext = false;
					yield second.value;
				}
			}
			yield result.value;
			result = await next();
		}
	}
}
