import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { StoredEventsSchema } from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import { nameKey } from "@plinth/resource";
import type { EventRow } from "@plinth/storage";
import type { ChangedRow } from "./own-events.ts";
import { eventMessage, type RecordedEvent, recordedEvent } from "./recorded-event.ts";

// The key of a row is `<owner>/<nameKey>`: the owner is the process that has recorded the events, and has no slash.

/** The row of a resource's events. */
export function encodeRow(owner: string, { key, events }: ChangedRow): EventRow {
	return {
		key: `${owner}/${key}`,
		body:
			events.length === 0
				? undefined
				: toBinary(
						StoredEventsSchema,
						create(StoredEventsSchema, { events: events.map(eventMessage) }),
					),
	};
}

/** A row that was stored by this or another process. */
export interface DecodedRow {
	readonly owner: string;
	/** See `nameKey`. */
	readonly key: string;
	/** None if the row was removed. */
	readonly events: readonly RecordedEvent[];
}

/** @throws Error if the row can't be decoded, or is not one of events. */
export function decodeRow({ key, body }: EventRow): DecodedRow {
	const slash = key.indexOf("/");
	if (slash < 0) {
		throw new Error(`a row of events has no owner: ${JSON.stringify(key)}`);
	}
	const name = key.slice(slash + 1);
	const { events } = fromBinary(StoredEventsSchema, body ?? new Uint8Array());
	return {
		owner: key.slice(0, slash),
		key: name,
		events: events.flatMap((message) => {
			const event = recordedEvent(message);
			// Callers see events by the rights on their resource, so that it must be the one of the row.
			return event !== undefined && nameKey(event.resource) === name ? [event] : [];
		}),
	};
}
