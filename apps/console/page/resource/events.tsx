import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Resource } from "@plinth/proto";
import { Severity } from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import { count } from "../model/format.ts";
import { Age } from "../parts/age.tsx";
import { Badge } from "../parts/badge.tsx";
import { DetailCard } from "./detail-card.tsx";
import { useEvents } from "./use-events.ts";

/** The newest events of a resource. */
export function Events({ resource }: { readonly resource: Resource }) {
	const query = useEvents(resource);
	return (
		<DetailCard title="Events" what="the events" query={query}>
			{({ events, hasMore }) =>
				events.length === 0 ? (
					<p className="muted">Nothing was recorded in the last hour.</p>
				) : (
					<ul className="list scrolls">
						{events.map((event) => (
							<li key={event.id}>
								<Badge tone={event.severity === Severity.WARNING ? "bad" : "plain"}>
									{event.reason}
								</Badge>{" "}
								<bdi>{event.message}</bdi>
								<p className="muted">
									<Age ms={event.lastAt && timestampMs(event.lastAt)} suffix=" ago" />
									{event.count > 1n && `, ${count(event.count)} times`}, from{" "}
									<bdi>{event.source}</bdi>
								</p>
							</li>
						))}
						{hasMore && <li className="muted">There are more.</li>}
					</ul>
				)
			}
		</DetailCard>
	);
}
