/** What a promise comes to, unless the signal aborts first: then its reason is thrown. */
export async function unlessAborted<T>(
	promise: Promise<T>,
	signal: AbortSignal | undefined,
): Promise<T> {
	if (signal === undefined) {
		return promise;
	}
	// Its failure matters to nobody any more once the signal has aborted.
	promise.catch(() => {});
	signal.throwIfAborted();
	const aborted = Promise.withResolvers<never>();
	const onAbort = () => aborted.reject(signal.reason);
	signal.addEventListener("abort", onAbort, { once: true });
	try {
		return await Promise.race([promise, aborted.promise]);
	} finally {
		signal.removeEventListener("abort", onAbort);
	}
}
