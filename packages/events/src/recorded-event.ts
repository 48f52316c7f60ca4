import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ID } from "@plinth/proto";
import {
	type Event,
	EventSchema,
	Severity,
} from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import type { EventRecord } from "@plinth/resource";

/** An event as it is now. It changes when it occurs again. */
export interface RecordedEvent {
	readonly id: string;
	readonly resource: ID;
	readonly severity: "normal" | "warning";
	readonly reason: string;
	message: string;
	readonly source: string;
	readonly server: string;
	count: number;
	readonly firstMs: number;
	lastMs: number;
}

/** The message of an event. */
export function eventMessage(event: RecordedEvent): Event {
	const { id, resource, reason, message, source, server } = event;
	const init: MessageInitShape<typeof EventSchema> = {
		...{ id, resource, reason, message, source, server },
		severity: event.severity === "warning" ? Severity.WARNING : Severity.NORMAL,
		count: BigInt(event.count),
		firstAt: timestampFromMs(event.firstMs),
		lastAt: timestampFromMs(event.lastMs),
	};
	return create(EventSchema, init);
}

/** The event of a message; `undefined` if that lacks its resource, or a time or its count is out of range. */
export function recordedEvent(message: Event): RecordedEvent | undefined {
	const { id, resource, reason, source, server, firstAt, lastAt } = message;
	if (resource === undefined || firstAt === undefined || lastAt === undefined) {
		return undefined;
	}
	const [firstMs, lastMs] = [timestampMs(firstAt), timestampMs(lastAt)];
	const count = Number(message.count);
	return isTime(firstMs) && isTime(lastMs) && Number.isSafeInteger(count)
		? {
				...{ id, resource, reason, message: message.message, source, server },
				severity: message.severity === Severity.WARNING ? "warning" : "normal",
				...{ count, firstMs, lastMs },
			}
		: undefined;
}

/** What makes an event of a resource the same as another one. */
export function identityOf({
	resource,
	source,
	severity = "normal",
	reason,
}: Pick<EventRecord, "resource" | "source" | "severity" | "reason">): string {
	return `${resource.uid}\0${source}\0${severity}\0${reason}`;
}

/** The latest time of a Date, in milliseconds since 1970. */
const latestMs = 8.64e15;

function isTime(ms: number): boolean {
	return Number.isSafeInteger(ms) && Math.abs(ms) <= latestMs;
}
