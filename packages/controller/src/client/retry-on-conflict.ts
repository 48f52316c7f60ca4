import { Code, ConnectError } from "@connectrpc/connect";
import { type Runtime, retry, systemRuntime } from "@plinth/runtime";

/** Options of `retryOnConflict`. */
export interface ConflictRetryOptions {
	/** Ends the wait for the next attempt. */
	readonly signal?: AbortSignal;
	/** The maximum of attempts; 20 by default. */
	readonly attempts?: number;
	/** The clock and the randomness of the delays; those of the machine by default. */
	readonly runtime?: Pick<Runtime, "clock" | "random">;
}

/**
 * Repeats a read-modify-write that names the version it has read, until no other writer comes first: after Aborted,
 * with exponential backoff and jitter in proportion to how long the attempts take. Each attempt must read again, with
 * strong consistency if another server may have written.
 *
 * ```ts
 * await retryOnConflict(async () => {
 *   const { resource } = await client.read({ id });
 *   await client.write({ resource: changed(resource) });
 * });
 * ```
 *
 * Writes without a version don't need it: the server orders them.
 *
 * @throws ConnectError Aborted after the last attempt, any other failure at once; the signal's reason.
 */
export function retryOnConflict<T>(
	attempt: () => Promise<T>,
	{ signal, attempts = 20, runtime = systemRuntime }: ConflictRetryOptions = {},
): Promise<T> {
	return retry(attempt, { runtime, attempts, baseMs: 1, maxMs: 100, isRetryable, signal });
}

function isRetryable(failure: unknown): boolean {
	return failure instanceof ConnectError && failure.code === Code.Aborted;
}
