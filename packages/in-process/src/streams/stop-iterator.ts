/**
 * Stops an iterator that will not be read any more, so that it releases its resources. An error, if
 * given, is thrown into it first. Results and errors of the iterator are ignored.
 */
export function stopIterator(iterator: AsyncIterator<unknown, unknown>, error?: unknown): void {
	if (error !== undefined) {
		ignore(() => iterator.throw?.(error));
	}
	ignore(() => iterator.return?.());
}

function ignore(act: () => PromiseLike<unknown> | undefined): void {
	try {
		act()?.then(undefined, () => {});
	} catch {
		// As a rejection.
	}
}
