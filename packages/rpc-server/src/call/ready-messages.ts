/** The iterator of a response that knows which messages are available without waiting. */
export interface ReadyMessages<T> extends AsyncIterator<T, undefined> {
	/**
	 * The next message if it is available; `undefined` if `next` would wait, or if the stream has ended. Called only
	 * while no call of `next` is pending.
	 *
	 * @throws what `next` would reject with.
	 */
	nextReady(): T | undefined;
}

/** The function that returns the next available message; `undefined` if the iterator has none. */
export function readyMessages<T>(iterator: AsyncIterator<T>): (() => T | undefined) | undefined {
	return hasReady(iterator) ? () => iterator.nextReady() : undefined;
}

function hasReady<T>(iterator: AsyncIterator<T>): iterator is ReadyMessages<T> {
	return "nextReady" in iterator && typeof iterator.nextReady === "function";
}
