/** The faults of a stream that a check of its order must detect. */
export const streamFaults = ["dropped event", "doubled event", "swapped events"] as const;

/** One of the faults of a stream. */
export type StreamFault = (typeof streamFaults)[number];

/** Whether a fault of any kind is one of a stream. */
export function isStreamFault(fault: string): fault is StreamFault {
	return streamFaults.some((each) => each === fault);
}

/**
 * The stream with one kind of fault. Two neighbors are swapped by holding the first one back until after the second.
 *
 * @param occurs - decides whether an item suffers the fault. Called at most once per item.
 */
export async function* withStreamFault<T>(
	items: AsyncIterable<T>,
	fault: StreamFault,
	occurs: (item: T) => boolean,
): AsyncGenerator<T, void, undefined> {
	let held: { readonly item: T } | undefined;
	for await (const item of items) {
		const struck = held === undefined && occurs(item);
		if (struck && fault === "swapped events") {
			held = { item };
			continue;
		}
		if (!(struck && fault === "dropped event")) {
			yield item;
		}
		if (struck && fault === "doubled event") {
			yield item;
		}
		if (held !== undefined) {
			yield held.item;
			held = undefined;
		}
	}
}
