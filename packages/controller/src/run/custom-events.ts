/**
 * Passes each event of a source to `onEvent`, one at a time, until the source ends or the signal aborts. A
 * source that ignores the signal is abandoned.
 */
export async function consume<Event>(
	source: AsyncIterable<Event>,
	signal: AbortSignal,
	onEvent: (event: Event) => Promise<void>,
): Promise<void> {
	let abandon = () => {};
	const onAbort = () => abandon();
	signal.addEventListener("abort", onAbort, { once: true });
	const events = source[Symbol.asyncIterator]();
	try {
		while (!signal.aborted) {
			// One per event: each race leaves a reaction on its promises for as long as they are pending.
			const aborted = Promise.withResolvers<undefined>();
			abandon = () => aborted.resolve(undefined);
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
