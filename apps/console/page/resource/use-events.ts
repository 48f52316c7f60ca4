import type { Resource } from "@plinth/proto";
import { EventService } from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import { useDetail } from "./use-detail.ts";

/** So many events are read. */
const mostEvents = 50;

/** The newest events of a resource, and of earlier ones with its name. */
export function useEvents(resource: Resource) {
	return useDetail("events", resource, (connection, id, signal) =>
		connection
			.client(EventService)
			.listEvents({ filter: { resource: { ...id, uid: "" } }, limit: mostEvents }, { signal }),
	);
}
