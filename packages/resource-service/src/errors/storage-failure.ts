import { Code, ConnectError } from "@connectrpc/connect";
import { DecodeError } from "@plinth/resource";
import {
	Exhausted,
	Fenced,
	GroupVersionMismatch,
	NotFound,
	Refused,
	SnapshotEnded,
	StorageUnavailable,
	VersionCompacted,
	WatchClosed,
} from "@plinth/storage";
import { resourceNotFound } from "./refusal.ts";

/**
 * Maps a failure of the storage to the error that the caller receives; `undefined` if only a bug explains it and
 * the caller must not receive any details.
 */
export function toConnectError(failure: unknown): ConnectError | undefined {
	if (failure instanceof ConnectError) {
		return failure;
	}
	if (failure instanceof NotFound) {
		return resourceNotFound();
	}
	if (failure instanceof GroupVersionMismatch) {
		return new ConnectError(
			`resource was requested with GroupVersion="${failure.requested.groupVersion}", but stored with GroupVersion="${failure.stored.id?.type?.groupVersion}"`,
			Code.InvalidArgument,
		);
	}
	if (failure instanceof DecodeError) {
		// The data was stored before its type changed. The request is not at fault.
		return new ConnectError(failure.message, Code.FailedPrecondition);
	}
	if (failure instanceof Fenced) {
		return new ConnectError(failure.message, Code.Aborted);
	}
	if (failure instanceof Refused) {
		return new ConnectError(failure.message, failure.code, undefined, [...failure.details]);
	}
	if (failure instanceof Exhausted) {
		return new ConnectError(failure.message, Code.ResourceExhausted);
	}
	if (failure instanceof WatchClosed) {
		return new ConnectError(
			`${failure.message}: discard the received state and watch again`,
			Code.Aborted,
		);
	}
	if (failure instanceof SnapshotEnded) {
		return new ConnectError(failure.message, Code.OutOfRange);
	}
	if (failure instanceof VersionCompacted) {
		return new ConnectError(`${failure.message}: watch again without a version`, Code.OutOfRange);
	}
	if (failure instanceof StorageUnavailable) {
		return new ConnectError(failure.message, Code.Unavailable);
	}
	return undefined;
}
