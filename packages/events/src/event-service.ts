import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { EventService, ID } from "@plinth/proto";
import {
	type Event,
	type EventFilter,
	ListEventsResponseSchema,
	type WatchEventsResponse,
	WatchEventsResponseSchema,
} from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import { idOf, nameKey, type TypeRegistry } from "@plinth/resource";
import { type Runtime, sleep, unlessAborted } from "@plinth/runtime";
import type { EventLog } from "./event-log.ts";
import { eventMessage, identityOf, type RecordedEvent } from "./recorded-event.ts";

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
	readonly runtime: Pick<Runtime, "clock" | "scheduler">;
	/** @throws ConnectError Unauthenticated. */
	readonly readerOf: (call: HandlerContext) => Promise<EventReader>;
}

const defaultLimit = 1_000;
const maxLimit = 10_000;

/** How many events one message of a stream has. */
const eventsPerMessage = 500;

/** Between two messages of a stream, in milliseconds: what occurs more often is sent once. */
const messageIntervalMs = 250;

/** How many events are looked at before others get their turn on the event loop. */
const eventsPerTurn = 200;

/** Creates the service that tells about events. */
export function createEventService(options: EventServiceOptions): ServiceImpl<typeof EventService> {
	const { log, readerOf } = options;
	return {
		async listEvents({ filter, limit }, call) {
			if (limit > maxLimit) {
				throw new ConnectError(
					`limit is at most ${maxLimit.toLocaleString("en")}, got ${limit}`,
					Code.InvalidArgument,
				);
			}
			const selected = new SelectedEvents(options, filter);
			const visible = new VisibleEvents(options, await readerOf(call), call.signal);
			const shown = limit || defaultLimit;
			// One more than is returned says whether there are more.
			const events = await visible.only(selected.stored(log).toSorted(newestFirst), shown + 1);
			return create(ListEventsResponseSchema, {
				events: events.slice(0, shown),
				hasMore: events.length > shown,
			});
		},
		watchEvents: ({ filter }, call) => watchEvents(options, filter, call),
	};
}

async function* watchEvents(
	options: EventServiceOptions,
	filter: EventFilter | undefined,
	call: HandlerContext,
): AsyncGenerator<WatchEventsResponse, void, undefined> {
	const { log, runtime, readerOf } = options;
	const reader = await readerOf(call);
	const selected = new SelectedEvents(options, filter);
	// Subscribed first: what occurs while the stored ones are read is sent after them.
	using changes = log.changes((event) => selected.has(event));
	const ends = AbortSignal.any([call.signal, ...(reader.ended ? [reader.ended] : [])]);
	/** The visible ones of the events, unless the rights have changed meanwhile. */
	const visibleOf = async (events: readonly RecordedEvent[]) => {
		const visible = await new VisibleEvents(options, reader, call.signal).only(events);
		throwIfEnded(reader);
		return visible;
	};
	const stored = selected.stored(log).toSorted(newestFirst).reverse();
	for (let start = 0; start === 0 || start < stored.length; start += eventsPerMessage) {
		const events = await visibleOf(stored.slice(start, start + eventsPerMessage));
		const isCurrent = start + eventsPerMessage >= stored.length;
		if (events.length > 0 || isCurrent) {
			yield create(WatchEventsResponseSchema, { events, isCurrent });
		}
	}
	for (;;) {
		await unlessAborted(changes.arrived, ends).catch(() => {});
		call.signal.throwIfAborted();
		const changed = changes.take(eventsPerMessage).flatMap((event) => selected.stateOf(event, log));
		const events = await visibleOf(changed);
		if (events.length > 0) {
			yield create(WatchEventsResponseSchema, { events, isCurrent: true });
		}
		await sleep(runtime.clock, messageIntervalMs, call.signal);
	}
}

function throwIfEnded({ ended }: EventReader): void {
	if (ended?.aborted) {
		throw new ConnectError(
			"the token has expired or its rights have changed: watch again",
			Code.Unauthenticated,
		);
	}
}

/** The events that a filter selects. */
class SelectedEvents {
	readonly #filter: EventFilter | undefined;
	/** The key of the resource that the filter selects. */
	readonly #key: string | undefined;

	constructor({ registry }: EventServiceOptions, filter: EventFilter | undefined) {
		this.#filter = filter;
		this.#key = filter?.resource && keyOf(filter.resource, registry);
	}

	/** Those that are stored. */
	stored(log: Pick<EventLog, "of" | "all">): readonly RecordedEvent[] {
		const events = this.#key === undefined ? log.all() : log.of(this.#key);
		return events.filter((event) => this.has(event));
	}

	/** An event as it is now, of all servers together; none if it has been dropped meanwhile. */
	stateOf(event: RecordedEvent, log: Pick<EventLog, "of">): readonly RecordedEvent[] {
		const identity = identityOf(event);
		return log.of(nameKey(event.resource)).filter((each) => identityOf(each) === identity);
	}

	has({ resource, severity }: RecordedEvent): boolean {
		const { type, tenancy, resource: named, onlyWarnings = false } = this.#filter ?? {};
		return (
			(!onlyWarnings || severity === "warning") &&
			(this.#key === undefined || this.#key === nameKey(resource)) &&
			// Controllers may name a resource without its uid.
			(!named?.uid || resource.uid === "" || named.uid === resource.uid) &&
			(type === undefined ||
				(type.group === resource.type?.group && type.kind === resource.type.kind)) &&
			isIn(tenancy?.partition, resource.tenancy?.partition) &&
			isIn(tenancy?.namespace, resource.tenancy?.namespace)
		);
	}
}

/** Decides which events a caller may see: once for each resource. */
class VisibleEvents {
	readonly #runtime: EventServiceOptions["runtime"];
	readonly #reader: EventReader;
	readonly #signal: AbortSignal;
	readonly #decisions = new Map<string, boolean>();

	constructor({ runtime }: EventServiceOptions, reader: EventReader, signal: AbortSignal) {
		this.#runtime = runtime;
		this.#reader = reader;
		this.#signal = signal;
	}

	/** The visible ones of the events, up to `limit`. */
	async only(events: readonly RecordedEvent[], limit = events.length): Promise<Event[]> {
		const visible: Event[] = [];
		for (const [at, event] of events.entries()) {
			if (visible.length === limit) {
				break;
			}
			if (at > 0 && at % eventsPerTurn === 0) {
				await this.#runtime.scheduler.turn();
				this.#signal.throwIfAborted();
			}
			// Before the decision: what occurs later is not what was decided about.
			const message = eventMessage(event);
			if (await this.#mayRead(event)) {
				visible.push(message);
			}
		}
		return visible;
	}

	async #mayRead({ resource }: RecordedEvent): Promise<boolean> {
		const key = `${resource.uid} ${resource.type?.groupVersion} ${nameKey(resource)}`;
		const decided = this.#decisions.get(key) ?? (await this.#reader.mayRead(resource));
		this.#decisions.set(key, decided);
		return decided;
	}
}

/** The key of a resource that a request names. */
function keyOf({ type, name, tenancy, region }: ID, registry: Pick<TypeRegistry, "all">): string {
	if (type === undefined || name === "") {
		throw new ConnectError("filter.resource needs a type and a name", Code.InvalidArgument);
	}
	const registered = registry
		.all()
		.find((each) => each.type.group === type.group && each.type.kind === type.kind);
	const id =
		registered === undefined
			? { type, name, ...(tenancy && { tenancy }) }
			: idOf(registered, name, tenancy);
	return nameKey({ ...id, region });
}

function isIn(selected: string | undefined, unit: string | undefined): boolean {
	return selected === undefined || selected === "" || selected === "*" || selected === unit;
}

function newestFirst(a: RecordedEvent, b: RecordedEvent): number {
	return b.lastMs - a.lastMs || (a.id < b.id ? 1 : -1);
}
