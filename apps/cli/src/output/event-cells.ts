import { type Event, Severity } from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import type { Io } from "../io.ts";
import { ago } from "./reconcile-cells.ts";
import { widthInSection } from "./section.ts";
import { plainCell, type Row, renderTable, type TableColumn } from "./table.ts";

/** How events are shown. */
export interface EventLayout {
	/** Whether each row names its resource. */
	readonly showResource: boolean;
	/** Whether each row names the partition and the namespace of its resource. */
	readonly showTenancy?: boolean;
	/** Whether each row says when the event occurred first, and which server has recorded it. */
	readonly isWide?: boolean;
}

/** The columns of events. */
export function eventColumns(layout: EventLayout): readonly TableColumn[] {
	const { showResource, showTenancy, isWide } = layout;
	return [
		...(showTenancy
			? [
					{ heading: "PARTITION", cut: true, priority: 3 },
					{ heading: "NAMESPACE", cut: true },
				]
			: []),
		{ heading: "LAST", cut: false },
		...(isWide ? [{ heading: "FIRST", cut: false, priority: 4 }] : []),
		{ heading: "COUNT", cut: false, priority: 2 },
		{ heading: "REASON", cut: false },
		...(showResource ? [{ heading: "RESOURCE", cut: true, readableWidth: 20 }] : []),
		{ heading: "BY", cut: true, priority: 1 },
		...(isWide ? [{ heading: "SERVER", cut: true, priority: 5 }] : []),
		{ heading: "MESSAGE", cut: true, readableWidth: 30 },
	];
}

/** The row of an event. */
export function eventRow(event: Event, layout: EventLayout, nowMs: number): Row {
	const { showResource, showTenancy, isWide } = layout;
	const { resource, severity, reason, message, source, server, count } = event;
	const { partition = "", namespace = "" } = resource?.tenancy ?? {};
	return [
		...(showTenancy ? [plainCell(partition), plainCell(namespace)] : []),
		plainCell(ago(event.lastAt, nowMs)),
		...(isWide ? [plainCell(ago(event.firstAt, nowMs))] : []),
		plainCell(String(count)),
		{ text: reason, tone: severity === Severity.WARNING ? "bad" : "plain" },
		...(showResource ? [plainCell(`${resource?.type?.kind ?? ""}/${resource?.name ?? ""}`)] : []),
		plainCell(source),
		...(isWide ? [plainCell(server)] : []),
		plainCell(message),
	];
}

/** The events of one resource as a table in a section, the newest last. */
export function eventsSection(
	events: readonly Event[],
	{ width, color, clock }: Pick<Io, "width" | "color" | "clock">,
): string {
	const layout = { showResource: false };
	const nowMs = clock.now();
	return events.length === 0
		? ""
		: renderTable(
				eventColumns(layout),
				events.map((event) => eventRow(event, layout, nowMs)),
				{ color, width: widthInSection(width) },
			);
}
