import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { ID } from "@plinth/proto";
import { DecodeError, nameKey } from "@plinth/resource";
import { backoffDelayMs, sleep } from "@plinth/runtime";
import { CasFailure, type Consistency, GroupVersionMismatch, WrongUid } from "@plinth/storage";
import type { ServiceContext } from "../service-context.ts";
import { isFinal } from "./final-refusal.ts";
import { writeQueuesOf } from "./write-queues.ts";

/**
 * How many times a write is attempted if commits conflict with it. Without a version, it runs alone from the second
 * attempt on, and even one that loses two attempts of three to other servers practically never needs all of them.
 */
const maxAttempts = 64;

const delays = { baseMs: 1, maxMs: 16 };

/** What a read-modify-write is about. */
export interface ReadModifyWrite {
	readonly id: ID;
	/** Whether it applies to whatever is stored, and is queued: it names no version, and is no dry run. */
	readonly isQueued: boolean;
}

/**
 * Runs one read-modify-write until it commits without a conflict. Writes without a version are queued: see
 * `WriteQueues`. The first attempt, and the one after the first conflict, may use an eventually consistent read:
 * what a conflict met is readable then. If such an attempt refuses the write, another one with a strong read
 * decides, unless the refusal is final.
 *
 * @param attempt - throws CasFailure or WrongUid on a conflict that a further attempt may resolve. If the
 *   request names a version, the attempt itself refuses a stored version that differs, so a retry never
 *   overwrites a concurrent write.
 * @throws ConnectError Aborted after the last attempt; the reason of the call's signal.
 */
export async function retryConflicts<T>(
	context: Pick<ServiceContext, "backend" | "runtime">,
	call: Pick<HandlerContext, "signal">,
	{ id, isQueued }: ReadModifyWrite,
	attempt: (consistency: Consistency) => Promise<T>,
): Promise<T> {
	const { runtime, backend } = context;
	const entered = isQueued ? writeQueuesOf(backend).enter(nameKey(id), call) : undefined;
	const admitted = entered instanceof Promise ? await entered : entered;
	let consistency: Consistency = "eventual";
	let outcome: "committed" | "failed" = "failed";
	try {
		for (let conflicts = 0; ; ) {
			try {
				const result = await attempt(consistency);
				outcome = "committed";
				return result;
			} catch (failure) {
				if (!(failure instanceof CasFailure || failure instanceof WrongUid)) {
					if (consistency === "strong" || isFinal(failure) || !isRefusal(failure)) {
						throw failure;
					}
					consistency = "strong";
					continue;
				}
				conflicts += 1;
				if (conflicts === maxAttempts) {
					throw new ConnectError(
						`write conflicted with concurrent writes ${maxAttempts} times: try again`,
						Code.Aborted,
					);
				}
				if (conflicts === 1) {
					await admitted?.alone();
				} else {
					consistency = "strong";
					const delayMs = backoffDelayMs(delays, conflicts - 1, runtime.random);
					await sleep(runtime.clock, delayMs, call.signal);
				}
			}
		}
	} finally {
		admitted?.end(outcome);
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
