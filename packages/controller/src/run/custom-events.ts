/**
 * Passes each event of a source to `onEvent`, one at a time, until the source ends or the signal aborts. A
 * source that ignores the signal is abandoned.
 */
export async function consume<Event>(
	source: AsyncIterable<Event>,
	signal: AbortSignal,
	onEvent: (event: Event) => Promise<void>,
): Promise<void> {
	const aborted = Promise.withResolvers<undefined>();
	const onAbort = () => aborted.resolve(undefined);
	signal.addEventListener("abort", onAbort, { once: true });
	const events = source[Symbol.asyncIterator]();
	try {
		while (!signal.aborted) {
			const next = events.next();
			const result = await Promise.race([next, aborted.promise]);
			if (result === undefined) {
				ignoreFailure(next);
				break;
			}
			if (result.done) {
				return;
			}
			await onEvent(result.value);
		}
	} finally {
		signal.removeEventListener("abort", onAbort);
	}
	const closing = events.return?.();
	if (closing !== undefined) {
		ignoreFailure(closing);
	}
}

function ignoreFailure(promise: Promise<unknown>): void {
	promise.catch(() => {});
}
