import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { idAt, tenancyAt } from "@plinth/documents";
import { type Event, EventSchema } from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import { displayName, tenancyOf, typeOf } from "@plinth/resource";
import { type EventFilterInit, followEvents, listEvents } from "../api/events.ts";
import { readResource, warnOfMissingTenancy } from "../api/read-resources.ts";
import type { ServerSession } from "../api/server-session.ts";
import { readStored } from "../apply/apply-resource.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { maxEvents } from "../limits.ts";
import { type EventLayout, eventColumns, eventRow } from "../output/event-cells.ts";
import type { ResourceFormat } from "../output/output-format.ts";
import { plainCell, renderTable, TableLayout } from "../output/table.ts";
import { warn } from "../warn.ts";
import { parseTypeOrTarget } from "./targets.ts";

/** The flags of `plinth events`. */
export interface EventFlags {
	readonly output: ResourceFormat;
	readonly allNamespaces?: boolean;
	readonly warnings?: boolean;
	readonly watch?: boolean;
	readonly limit: number;
}

/** Prints the events of a resource, of a type, or of the namespace, the newest last. */
export async function events(
	session: ServerSession,
	words: readonly string[],
	flags: EventFlags,
): Promise<ExitCode> {
	const filter = await filterOf(session, words, flags);
	const layout = {
		showResource: filter.resource === undefined,
		showTenancy: filter.resource === undefined && (flags.allNamespaces ?? false),
		isWide: flags.output === "wide",
	};
	if (flags.watch) {
		return watchEvents(session, filter, flags.output, layout);
	}
	const { io } = session;
	const { events: newestFirst, hasMore } = await listEvents(session, filter, flags.limit);
	if (newestFirst.length === 0) {
		await checkExists(session, words, filter, flags);
	}
	if (newestFirst.length === 0 && isTable(flags.output)) {
		io.err("no events\n");
		return exitCodes.ok;
	}
	io.out(await show(newestFirst.toReversed(), flags.output, layout, session));
	if (hasMore) {
		warn(io, `older events are not shown: ${adviceOn(flags, filter)}`);
	}
	return exitCodes.ok;
}

/**
 * Warns if there are no events because the namespace does not exist.
 *
 * @throws Failure if a resource is named that does not exist, and of which the server has no events at all.
 */
async function checkExists(
	session: ServerSession,
	words: readonly string[],
	filter: EventFilterInit,
	{ allNamespaces, warnings }: EventFlags,
): Promise<void> {
	const { type, name } = words.length === 0 ? {} : parseTypeOrTarget(words, await session.types());
	if (type === undefined || name === undefined) {
		const place = type === undefined ? session.place : tenancyAt(type, session.place, false);
		return allNamespaces ? undefined : warnOfMissingTenancy(session, place);
	}
	const { resource } = filter;
	const others = warnings
		? await listEvents(session, { ...(resource && { resource }) }, 1)
		: undefined;
	if (others === undefined || others.events.length === 0) {
		const { connection, io, place } = session;
		const id = idAt(type, name, place);
		if ((await session.call(readStored(connection.resources, id, io.signal))) === undefined) {
			// Says whether its namespace is missing, too.
			await readResource(session, type, name);
		}
	}
}

/** How to see older events. */
function adviceOn({ limit, warnings }: EventFlags, { resource, type }: EventFilterInit): string {
	if (limit < maxEvents) {
		return "raise --limit";
	}
	const narrower = [
		...(resource === undefined
			? [type === undefined ? "name a type or a resource" : "name a resource"]
			: []),
		...(warnings ? [] : ["set --warnings"]),
	];
	return `${maxEvents} is the maximum of --limit${narrower.length === 0 ? "" : `; to see others, ${narrower.join(", or ")}`}`;
}

/** What to show: without words, what is in the namespace. */
async function filterOf(
	session: ServerSession,
	words: readonly string[],
	{ warnings = false, allNamespaces = false }: EventFlags,
): Promise<EventFilterInit> {
	const severity = { onlyWarnings: warnings };
	const tenancy = allNamespaces ? {} : { tenancy: session.place };
	if (words.length === 0) {
		return { ...severity, ...tenancy };
	}
	const { type, name } = parseTypeOrTarget(words, await session.types());
	if (name !== undefined) {
		return { ...severity, resource: idAt(type, name, session.place) };
	}
	return {
		...severity,
		type: typeOf(type.type),
		tenancy: tenancyOf(tenancyAt(type, session.place, allNamespaces)),
	};
}

async function show(
	all: readonly Event[],
	output: ResourceFormat,
	layout: EventLayout,
	{ io }: ServerSession,
): Promise<string> {
	switch (output) {
		case "json":
			return `${JSON.stringify(all.map(jsonOf), undefined, 2)}\n`;
		case "yaml":
			return (await import("@plinth/documents/yaml")).toYaml(...all.map(jsonOf));
		case "name":
			return all.map((event) => `${nameOf(event)}\n`).join("");
		case "table":
		case "wide": {
			const nowMs = io.clock.now();
			const rows = all.map((event) => eventRow(event, layout, nowMs));
			return renderTable(eventColumns(layout), rows, io);
		}
	}
}

/** Prints what there is, and then each event that occurs, until it is interrupted. */
async function watchEvents(
	session: ServerSession,
	filter: EventFilterInit,
	output: ResourceFormat,
	layout: EventLayout,
): Promise<never> {
	const { io } = session;
	let waiting: Event[] | undefined = [];
	let table: TableLayout | undefined;
	for await (const { events: batch, isCurrent } of followEvents(session, filter)) {
		if (!isTable(output)) {
			for (const event of batch) {
				io.out(await showOne(event, output));
			}
			continue;
		}
		const nowMs = io.clock.now();
		if (waiting !== undefined) {
			waiting.push(...batch);
			if (!isCurrent) {
				continue;
			}
			const sample = waiting.map((event) => eventRow(event, layout, nowMs));
			// The first events may be seconds old, and later ones minutes.
			const widest = eventColumns(layout).map(({ heading }) =>
				plainCell(heading === "LAST" || heading === "FIRST" ? "59m59s" : ""),
			);
			const { width, color } = io;
			table = new TableLayout(eventColumns(layout), [widest, ...sample], {
				...{ width, color, moreFollows: true },
			});
			io.out(table.heading() + sample.map((row) => table?.row(row)).join(""));
			waiting = undefined;
			continue;
		}
		io.out(batch.map((event) => table?.row(eventRow(event, layout, nowMs))).join(""));
	}
	throw new Error("the watch ended unexpectedly");
}

async function showOne(event: Event, output: ResourceFormat): Promise<string> {
	switch (output) {
		case "json":
			return `${JSON.stringify(jsonOf(event))}\n`;
		case "yaml":
			return `---\n${(await import("@plinth/documents/yaml")).toYaml(jsonOf(event))}`;
		default:
			return `${nameOf(event)}\n`;
	}
}

function isTable(output: ResourceFormat): boolean {
	return output === "table" || output === "wide";
}

function nameOf({ resource, reason }: Event): string {
	return `${resource === undefined ? "" : displayName(resource)}: ${reason}`;
}

function jsonOf(event: Event): JsonValue {
	return toJson(EventSchema, event, { useProtoFieldName: true });
}
