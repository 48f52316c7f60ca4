import { Code, ConnectError } from "@connectrpc/connect";
import { DecodeError } from "@plinth/resource";
import { backoffDelayMs, type Runtime, sleep } from "@plinth/runtime";
import { CasFailure, type Consistency, GroupVersionMismatch, WrongUid } from "@plinth/storage";

/** How many times a write is attempted if concurrent commits conflict with it. */
const maxAttempts = 6;

const delays = { baseMs: 1, maxMs: 16 };

/**
 * Runs one read-modify-write until it commits without a conflict. The first attempt may use an eventually
 * consistent read. If it refuses the write, another attempt with a strong read decides.
 *
 * @param attempt - throws CasFailure or WrongUid on a conflict that a further attempt may resolve. If the
 *   request names a version, the attempt itself refuses a stored version that differs, so a retry never
 *   overwrites a concurrent write.
 * @throws ConnectError Aborted after the last attempt.
 */
export async function retryConflicts<T>(
	runtime: Runtime,
	call: { readonly signal: AbortSignal },
	attempt: (consistency: Consistency) => Promise<T>,
): Promise<T> {
	for (let number = 1; ; number += 1) {
		try {
			return await attempt(number === 1 ? "eventual" : "strong");
		} catch (failure) {
			const conflict = failure instanceof CasFailure || failure instanceof WrongUid;
			if (!conflict && !(number === 1 && isRefusal(failure))) {
				throw failure;
			}
			if (number === maxAttempts) {
				throw new ConnectError(
					`write conflicted with concurrent writes ${maxAttempts} times: try again`,
					Code.Aborted,
				);
			}
			if (conflict) {
				const delayMs = backoffDelayMs(delays, number, runtime.random);
				await sleep(runtime.clock, delayMs, call.signal);
			}
		}
	}
}

/** Whether an outdated read may have caused the failure. */
function isRefusal(failure: unknown): boolean {
	return (
		failure instanceof ConnectError ||
		failure instanceof GroupVersionMismatch ||
		failure instanceof DecodeError
	);
}
