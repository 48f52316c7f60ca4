import { Code, ConnectError } from "@connectrpc/connect";
import { DecodeError } from "@plinth/resource";
import { backoffDelayMs, type Runtime, sleep } from "@plinth/runtime";
import { CasFailure, type Consistency, GroupVersionMismatch, WrongUid } from "@plinth/storage";

/** How often a write is tried against what others commit meanwhile. */
const maxAttempts = 6;

const delays = { baseMs: 1, maxMs: 16 };

/**
 * Runs one read-modify-write until it commits without a conflict. The first attempt may read what
 * this server knows; what it refuses is refused only after an attempt that reads strongly.
 *
 * @param attempt - throws CasFailure or WrongUid on a conflict that another attempt may not meet.
 *   An attempt for a caller that gave a version meets, and refuses, what does not match it, so that
 *   it is never retried over another's write.
 * @throws ConnectError Aborted when the attempts are used up.
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
					`write conflicted with others ${maxAttempts} times: try again`,
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

/** What may be due to an old read. */
function isRefusal(failure: unknown): boolean {
	return (
		failure instanceof ConnectError ||
		failure instanceof GroupVersionMismatch ||
		failure instanceof DecodeError
	);
}
