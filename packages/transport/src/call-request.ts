import type { Clock } from "@plinth/runtime";
import { copyHeaders } from "./copy-headers.ts";

/** The metadata of a call. */
export interface CallRequest {
	/** A private copy of the caller's headers, if any. */
	readonly header: Headers | undefined;
	readonly signal: AbortSignal | undefined;
	readonly timeoutMs: number | undefined;
	/** The end of the timeout, on the clock's monotonic scale. */
	readonly deadlineMs: number | undefined;
}

/**
 * Creates the metadata of a call that starts now, from the arguments of a transport's method. As on the wire, a
 * timeout of 0 or less means no timeout.
 *
 * @throws ConnectError Internal that names a header whose name or value is invalid.
 */
export function createCallRequest(
	{ clock, defaultTimeoutMs }: { clock: Clock; defaultTimeoutMs?: number | undefined },
	signal: AbortSignal | undefined,
	ownTimeoutMs: number | undefined,
	header: ConstructorParameters<typeof Headers>[0],
): CallRequest {
	const timeoutMs = ownTimeoutMs === undefined ? defaultTimeoutMs : positive(ownTimeoutMs);
	return {
		signal,
		header: header === undefined ? undefined : copyHeaders(header),
		timeoutMs,
		deadlineMs: timeoutMs === undefined ? undefined : clock.monotonic() + timeoutMs,
	};
}

function positive(timeoutMs: number): number | undefined {
	return timeoutMs > 0 ? timeoutMs : undefined;
}
