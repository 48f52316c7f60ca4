import { CasFailure, WrongUid } from "@plinth/storage";

/** Whether a commit failed because it expected another version or uid than the stored one. */
export function isConflict(failure: unknown): failure is CasFailure | WrongUid {
	return failure instanceof CasFailure || failure instanceof WrongUid;
}
