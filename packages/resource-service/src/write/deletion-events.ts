import { Code } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { type Access, type EventRecorder, finalizersOf } from "@plinth/resource";
import { toConnectError } from "../errors/storage-failure.ts";

// Each caller that may read the resource may read these events. The error of a refusal is for its caller alone: it may name
// resources that only this caller may read.

/** Records that a deletion waits, if the resource was marked and not deleted. */
export function recordWait(
	events: EventRecorder,
	{ subject }: Access,
	marked: Resource | undefined,
): void {
	if (marked?.id !== undefined) {
		events.record({
			resource: marked.id,
			source,
			reason: "DeletionWaits",
			message: `deletion requested by ${subject}; it waits for ${finalizersOf(marked).join(", ")}`,
		});
	}
}

/** Records that the state of the resource, or of others, does not allow its deletion. */
export function recordRefusal(
	events: EventRecorder,
	{ subject }: Access,
	target: Resource | undefined,
	failure: unknown,
): void {
	if (target?.id !== undefined && toConnectError(failure)?.code === Code.FailedPrecondition) {
		events.record({
			resource: target.id,
			source,
			severity: "warning",
			reason: "DeletionRefused",
			message: `deletion requested by ${subject}, and refused: other resources reference or need this one`,
		});
	}
}

/** The server itself. */
const source = "plinth";
