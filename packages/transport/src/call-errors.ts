import { Code, ConnectError } from "@connectrpc/connect";

/** The error of a call whose signal aborted with the given reason. */
export function canceledBy(reason: unknown): ConnectError {
	return ConnectError.from(reason, Code.Canceled);
}

/** The error of a call that reached its deadline. */
export function deadlineExceeded(): ConnectError {
	return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}

/** The error of a call whose reader has stopped reading. */
export function canceledByReader(): ConnectError {
	return new ConnectError("the caller stopped reading", Code.Canceled);
}
