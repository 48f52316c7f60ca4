/**
 * Tells an iterator that nobody will ask it for more, so that it lets go of what it holds: with an
 * error, where that is why, thrown into it. What it says to that is nobody's business any more.
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
