import type { RecordedEvent } from "./recorded-event.ts";

/**
 * The events that have changed since they were taken last, each once, the one that waits longest first. If too many wait,
 * the oldest are dropped: a slow reader misses events, and costs no more than that.
 */
export class EventChanges {
	readonly #limit: number;
	readonly #waiting = new Map<string, RecordedEvent>();
	readonly #end: () => void;
	#arrived = Promise.withResolvers<void>();

	/**
	 * @param limit - how many events wait at most.
	 * @param end - called when no more changes are needed.
	 */
	constructor(limit: number, end: (changes: EventChanges) => void) {
		this.#limit = limit;
		this.#end = () => end(this);
	}

	/** Resolves when some event waits. */
	get arrived(): Promise<void> {
		return this.#arrived.promise;
	}

	/** How many events wait. */
	get size(): number {
		return this.#waiting.size;
	}

	add(event: RecordedEvent): void {
		if (this.#waiting.size === this.#limit && !this.#waiting.has(event.id)) {
			const [oldest] = this.#waiting.keys();
			if (oldest !== undefined) {
				this.#waiting.delete(oldest);
			}
		}
		this.#waiting.set(event.id, event);
		this.#arrived.resolve();
	}

	/** Takes up to `limit` events, as they are now. */
	take(limit: number): readonly RecordedEvent[] {
		const taken: RecordedEvent[] = [];
		for (const [id, event] of this.#waiting) {
			if (taken.length === limit) {
				break;
			}
			this.#waiting.delete(id);
			taken.push(event);
		}
		if (this.#waiting.size === 0) {
			this.#arrived = Promise.withResolvers();
		}
		return taken;
	}

	[Symbol.dispose](): void {
		this.#end();
	}
}
