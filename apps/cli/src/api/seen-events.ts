import type { Event } from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";

/** As many as a server returns at most. */
const remembered = 10_000;

/** The newest events that have been seen, so that a watch can leave them out after it has reconnected. */
export class SeenEvents {
	/** How often each has occurred, in the order in which they were seen. */
	readonly #counts = new Map<string, bigint>();

	/** Those of the events that were not seen before, or have occurred again since; they are seen from now on. */
	add<E extends Pick<Event, "id" | "count">>(events: readonly E[]): readonly E[] {
		const fresh = events.filter(({ id, count }) => this.#counts.get(id) !== count);
		for (const { id, count } of fresh) {
			// Deleted first, since a key that is set again keeps its place in the order.
			this.#counts.delete(id);
			this.#counts.set(id, count);
		}
		for (const id of this.#counts.keys()) {
			if (this.#counts.size <= remembered) {
				break;
			}
			this.#counts.delete(id);
		}
		return fresh;
	}
}
