import { nameKey } from "@plinth/resource";
import { LinkedList, type ListEntry } from "@plinth/runtime";
import { identityOf, type RecordedEvent } from "./recorded-event.ts";

/**
 * The events that have changed since they were taken last, each once, the one that waits longest first. If too many wait,
 * the oldest are dropped: a slow reader misses events, and costs no more than that.
 */
export class EventChanges {
	readonly #limit: number;
	readonly #matches: (event: RecordedEvent) => boolean;
	readonly #end: () => void;
	/** By resource and identity. */
	readonly #waiting = new Map<string, ListEntry<Waiting>>();
	/** A Map that loses its first entry with each new one takes ever longer to find the next. */
	readonly #order = new LinkedList<Waiting>();
	#arrived = Promise.withResolvers<void>();

	/**
	 * @param limit - how many events wait at most.
	 * @param matches - which events are of interest.
	 * @param end - called when no more changes are needed.
	 */
	constructor(
		limit: number,
		matches: (event: RecordedEvent) => boolean,
		end: (changes: EventChanges) => void,
	) {
		this.#limit = limit;
		this.#matches = matches;
		this.#end = () => end(this);
	}

	/** Resolves when some event waits. */
	get arrived(): Promise<void> {
		return this.#arrived.promise;
	}

	/** How many events wait. */
	get size(): number {
		return this.#order.size;
	}

	add(event: RecordedEvent): void {
		if (!this.#matches(event)) {
			return;
		}
		const key = `${nameKey(event.resource)}\0${identityOf(event)}`;
		if (this.#waiting.has(key)) {
			return;
		}
		if (this.#order.size === this.#limit) {
			this.#shift();
		}
		this.#waiting.set(key, this.#order.append({ key, event }));
		this.#arrived.resolve();
	}

	/** Takes up to `limit` events: their state is to be looked up. */
	take(limit: number): readonly RecordedEvent[] {
		const taken: RecordedEvent[] = [];
		while (taken.length < limit) {
			const next = this.#shift();
			if (next === undefined) {
				break;
			}
			taken.push(next.event);
		}
		if (this.#order.size === 0) {
			this.#arrived = Promise.withResolvers();
		}
		return taken;
	}

	#shift(): Waiting | undefined {
		const first = this.#order.shift();
		if (first !== undefined) {
			this.#waiting.delete(first.key);
		}
		return first;
	}

	[Symbol.dispose](): void {
		this.#end();
	}
}

interface Waiting {
	readonly key: string;
	readonly event: RecordedEvent;
}
