/** The result of a request. Equal results have equal messages. */
export interface RequestResult {
	readonly ok: boolean;
	/** For programs, in PascalCase. */
	readonly reason: string;
	/** For people. */
	readonly message: string;
}

/** Requests a URL. A failure is a result, not an error. Rejects if the signal aborts. */
export type RequestUrl = (url: string, signal: AbortSignal) => Promise<RequestResult>;

const timeoutMs = 10_000;

/** Requests a URL over the network. */
export const requestUrl: RequestUrl = async (url, signal) => {
	const timeout = AbortSignal.timeout(timeoutMs);
	try {
		const response = await fetch(url, { signal: AbortSignal.any([signal, timeout]) });
		await response.body?.cancel();
		return {
			ok: response.ok,
			reason: response.ok ? "Responded" : "BadStatus",
			message: `${url} responded with ${response.status}`,
		};
	} catch (error) {
		signal.throwIfAborted();
		if (timeout.aborted) {
			return { ok: false, reason: "TimedOut", message: `no response within ${timeoutMs} ms` };
		}
		const { cause = error } = error instanceof Error ? error : {};
		const message = cause instanceof Error ? cause.message : String(cause);
		return { ok: false, reason: "RequestFailed", message };
	}
};
