import { Code, ConnectError } from "@connectrpc/connect";
import type { Logger } from "@plinth/runtime";
import { CasFailure, StorageUnavailable, WatchClosed } from "@plinth/storage";

/** The error that a peer receives for a failure: without details of what only a bug explains, which is logged. */
export function explainFailure(failure: unknown, logger: Logger): ConnectError {
	if (failure instanceof ConnectError) {
		return failure;
	}
	if (failure instanceof CasFailure || failure instanceof WatchClosed) {
		return new ConnectError("a concurrent change: try again", Code.Aborted);
	}
	if (failure instanceof StorageUnavailable) {
		return new ConnectError("the storage can't be reached", Code.Unavailable);
	}
	logger.error({ err: failure }, "a call of a peer failed");
	return new ConnectError("internal error", Code.Internal);
}
