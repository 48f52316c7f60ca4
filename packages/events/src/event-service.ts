import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { EventService, ID } from "@plinth/proto";
import {
	type EventFilter,
	ListEventsResponseSchema,
	type WatchEventsResponse,
	WatchEventsResponseSchema,
} from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import { idOf, nameKey, type TypeRegistry } from "@plinth/resource";
import { aborted, type Clock, sleep } from "@plinth/runtime";
import type { EventLog } from "./event-log.ts";
import { eventMessage, type RecordedEvent } from "./recorded-event.ts";

/** The rights of the caller of a request. */
export interface EventReader {
	/** Whether the caller may read the resource, if it still exists, or those of its name otherwise. */
	mayRead(resource: ID): Promise<boolean>;
	/** Aborts when the rights have changed: the stream ends, and the client authenticates again. */
	readonly ended?: AbortSignal | undefined;
}

/** Options of the service. */
export interface EventServiceOptions {
	readonly log: Pick<EventLog, "of" | "all" | "changes">;
	/** The types whose scopes say which tenancy a resource has that a filter names without one. */
	readonly registry: Pick<TypeRegistry, "all">;
	readonly clock: Clock;
	/** @throws ConnectError Unauthenticated. */
	readonly readerOf: (call: HandlerContext) => Promise<EventReader>;
}

const defaultLimit = 1_000;
const maxLimit = 10_000;

/** How many events one message of a stream has. */
const eventsPerMessage = 500;

/** Between two messages of a stream, in milliseconds: what occurs more often is sent once. */
const messageIntervalMs = 250;

/** Creates the service that tells about events. */
export function createEventService(options: EventServiceOptions): ServiceImpl<typeof EventService> {
	const { log, readerOf, registry } = options;
	return {
		async listEvents({ filter, limit }, call) {
			if (limit > maxLimit) {
				throw new ConnectError(
					`limit is at most ${maxLimit.toLocaleString("en")}, got ${limit}`,
					Code.InvalidArgument,
				);
			}
			const visible = new VisibleEvents(await readerOf(call), filter, registry);
			const shown = limit || defaultLimit;
			const events: RecordedEvent[] = [];
			// One more than is returned says whether there are more.
			for (const event of visible.stored(log).toSorted(newestFirst)) {
				if (await visible.isVisible(event)) {
					events.push(event);
				}
				if (events.length > shown) {
					break;
				}
			}
			return create(ListEventsResponseSchema, {
				events: events.slice(0, shown).map(eventMessage),
				hasMore: events.length > shown,
			});
		},
		watchEvents: ({ filter }, call) => watchEvents(options, filter, call),
	};
}

async function* watchEvents(
	{ log, clock, readerOf, registry }: EventServiceOptions,
	filter: EventFilter | undefined,
	call: HandlerContext,
): AsyncGenerator<WatchEventsResponse, void, undefined> {
	const reader = await readerOf(call);
	// Subscribed first: what occurs while the stored ones are read is sent after them.
	using changes = log.changes();
	const visible = new VisibleEvents(reader, filter, registry);
	const stored = visible.stored(log).toSorted(newestFirst).reverse();
	for (let start = 0; start === 0 || start < stored.length; start += eventsPerMessage) {
		const part = await visible.only(stored.slice(start, start + eventsPerMessage));
		const isCurrent = start + eventsPerMessage >= stored.length;
		if (part.length > 0 || isCurrent) {
			yield response(part, isCurrent);
		}
	}
	const ends = reader.ended === undefined ? [call.signal] : [call.signal, reader.ended];
	const ended = aborted(...ends);
	for (;;) {
		await Promise.race([changes.arrived, ended]);
		call.signal.throwIfAborted();
		if (reader.ended?.aborted) {
			throw new ConnectError(
				"the token has expired or its rights have changed: watch again",
				Code.Unauthenticated,
			);
		}
		const part = await visible.only(changes.take(eventsPerMessage));
		if (part.length > 0) {
			yield response(part, true);
		}
		await sleep(clock, messageIntervalMs, call.signal);
	}
}

function response(events: readonly RecordedEvent[], isCurrent: boolean): WatchEventsResponse {
	return create(WatchEventsResponseSchema, { events: events.map(eventMessage), isCurrent });
}

/** The events that a filter selects and a caller may see. */
class VisibleEvents {
	readonly #reader: EventReader;
	readonly #filter: EventFilter | undefined;
	/** The key of the resource that the filter selects. */
	readonly #key: string | undefined;

	constructor(
		reader: EventReader,
		filter: EventFilter | undefined,
		registry: Pick<TypeRegistry, "all">,
	) {
		this.#reader = reader;
		this.#filter = filter;
		this.#key = filter?.resource && keyOf(filter.resource, registry);
	}

	/** The events of the log that may be selected. */
	stored(log: Pick<EventLog, "of" | "all">): readonly RecordedEvent[] {
		const events = this.#key === undefined ? log.all() : log.of(this.#key);
		return events.filter((event) => this.#matches(event));
	}

	/** Those of the events that are visible. */
	async only(events: readonly RecordedEvent[]): Promise<readonly RecordedEvent[]> {
		const decisions = new Map<string, boolean>();
		const visible: RecordedEvent[] = [];
		for (const event of events) {
			if (!this.#matches(event)) {
				continue;
			}
			const key = `${event.resource.uid} ${nameKey(event.resource)}`;
			const isReadable = decisions.get(key) ?? (await this.#reader.mayRead(event.resource));
			decisions.set(key, isReadable);
			if (isReadable) {
				visible.push(event);
			}
		}
		return visible;
	}

	async isVisible(event: RecordedEvent): Promise<boolean> {
		return (await this.only([event])).length > 0;
	}

	#matches({ resource, severity }: RecordedEvent): boolean {
		const { type, tenancy, resource: named, onlyWarnings = false } = this.#filter ?? {};
		return (
			(!onlyWarnings || severity === "warning") &&
			(this.#key === undefined || this.#key === nameKey(resource)) &&
			(!named?.uid || named.uid === resource.uid) &&
			(type === undefined ||
				(type.group === resource.type?.group && type.kind === resource.type.kind)) &&
			isIn(tenancy?.partition, resource.tenancy?.partition) &&
			isIn(tenancy?.namespace, resource.tenancy?.namespace)
		);
	}
}

/** The key of a resource that a request names. */
function keyOf({ type, name, tenancy }: ID, registry: Pick<TypeRegistry, "all">): string {
	if (type === undefined || name === "") {
		throw new ConnectError("filter.resource needs a type and a name", Code.InvalidArgument);
	}
	const registered = registry
		.all()
		.find((each) => each.type.group === type.group && each.type.kind === type.kind);
	return nameKey(
		registered === undefined
			? { type, name, ...(tenancy && { tenancy }) }
			: idOf(registered, name, tenancy),
	);
}

function isIn(selected: string | undefined, unit: string | undefined): boolean {
	return selected === undefined || selected === "" || selected === "*" || selected === unit;
}

function newestFirst(a: RecordedEvent, b: RecordedEvent): number {
	return b.lastMs - a.lastMs || (a.id < b.id ? 1 : -1);
}
