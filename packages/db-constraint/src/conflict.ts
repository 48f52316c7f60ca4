import { CasFailure, WrongUid } from "@plinth/storage";

/** Whether a commit failed because something else is stored than it expected. */
export function isConflict(failure: unknown): failure is CasFailure | WrongUid {
	return failure instanceof CasFailure || failure instanceof WrongUid;
}
