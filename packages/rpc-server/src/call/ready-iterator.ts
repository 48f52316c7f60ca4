/** An iterator of messages that can return those which are available without waiting. */
export interface ReadyIterator<T> extends AsyncIterator<T, undefined> {
	/**
	 * The next message if it is available; `undefined` if `next` would wait, or if the stream has ended. Must only be
	 * called while no call of `next` is pending.
	 *
	 * @throws the error that `next` would reject with.
	 */
	nextReady(): T | undefined;
}

/** The iterator's `nextReady` as a function; `undefined` if the iterator has none. */
export function nextReadyOf<T>(iterator: AsyncIterator<T>): (() => T | undefined) | undefined {
	return hasReady(iterator) ? () => iterator.nextReady() : undefined;
}

function hasReady<T>(iterator: AsyncIterator<T>): iterator is ReadyIterator<T> {
	return "nextReady" in iterator && typeof iterator.nextReady === "function";
}
