import type { Type } from "@plinth/proto";
import { gvkKey, sameType } from "@plinth/resource";

/** Counts the changes of each type. Counters only grow, so that a reader that remembers them knows the rates. */
export class WriteCounts {
	readonly #counts = new Map<string, { count: number }>();
	/** The counter of the last change: the next change usually has the same type. */
	#last: { readonly type: Type; readonly counter: { count: number } } | undefined;

	/** Counts a change of a resource of the type. */
	add(type: Type): void {
		if (this.#last === undefined || !sameType(this.#last.type, type)) {
			this.#last = { type, counter: this.#counterOf(gvkKey(type)) };
		}
		this.#last.counter.count += 1;
	}

	/** The number of changes of each type, by type key. */
	byType(): ReadonlyMap<string, number> {
		return new Map([...this.#counts].map(([key, { count }]) => [key, count]));
	}

	#counterOf(key: string): { count: number } {
		let counter = this.#counts.get(key);
		if (counter === undefined) {
			counter = { count: 0 };
			this.#counts.set(key, counter);
		}
		return counter;
	}
}
