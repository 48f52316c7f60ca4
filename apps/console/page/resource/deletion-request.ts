import type { Resource } from "@plinth/proto";
import type { Event } from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import { deletionTimestampKey } from "@plinth/resource";

/** When a resource was marked for deletion, in milliseconds; `undefined` if it is not, or the time can't be read. */
export function markedAtMs({ metadata }: Pick<Resource, "metadata">): number | undefined {
	const text = Object.hasOwn(metadata, deletionTimestampKey) ? metadata[deletionTimestampKey] : "";
	const ms = Date.parse(text ?? "");
	return Number.isNaN(ms) ? undefined : ms;
}

/**
 * Who requested a deletion that waits, as its event says. `undefined` if no event says so: they are kept for a limited time, and
 * other versions of the server may word them differently.
 */
export function requesterOf(
	events: readonly Pick<Event, "reason" | "source" | "message">[],
): string | undefined {
	const event = events.find(
		({ reason, source }) => reason === "DeletionWaits" && source === "plinth",
	);
	return event && /^deletion requested by (.+); it waits for /s.exec(event.message)?.[1];
}
