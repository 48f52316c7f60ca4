import type { DescMessage } from "@bufbuild/protobuf";
import { cloneResource, type ID, type Resource } from "@plinth/proto";
import { type Decoded, decode, decodeShared, type ResourceType } from "@plinth/resource";
import type { Clock, Logger } from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import { anyChange, type ChangePredicate } from "./change.ts";
import type { MapperContext } from "./context.ts";
import { isReadOnly, type Mapper, type MapResult } from "./mapper.ts";
import type { Share } from "./share.ts";

/** The regions whose copies are cached and mapped; `*` for all other regions. */
export type WatchedRegions = "*" | readonly string[];

/** A watch of a resource type: it is cached, and its changes are mapped to requests. */
export interface ResourceWatch {
	readonly kind: "resources";
	readonly type: ResourceType;
	readonly when: ChangePredicate;
	readonly regions: WatchedRegions;
	/** Whether the mapper receives the shared resources of the cache instead of copies. */
	readonly readOnly: boolean;
	/** Maps a shared resource; the mapper receives a copy unless it is read-only. */
	readonly map: (context: MapperContext, resource: Resource) => MapResult;
}

/** How changes of a watched type become requests. */
export interface WatchOptions<Desc extends DescMessage> {
	readonly map: Mapper<Desc>;
	/** Which changes are mapped; all by default. The cache applies all changes in any case. */
	readonly when?: ChangePredicate;
	/**
	 * The regions of the service whose copies are cached and mapped as well; none by default. A copy has its region in
	 * `id.region`, and reads of the cache return it only if they name that region. A watch of the managed type maps
	 * nothing but copies: its other resources are requested themselves.
	 */
	readonly regions?: WatchedRegions;
}

/** Watches a resource type. */
export function watch<Desc extends DescMessage>(
	type: ResourceType<Desc>,
	options: WatchOptions<Desc>,
): ResourceWatch {
	const { map, when = anyChange, regions = [] } = options;
	const readOnly = isReadOnly(map);
	const decoded = readOnly
		? (resource: Resource) => new SharedDecoded(type, resource)
		: (resource: Resource) => new OwnDecoded(type, cloneResource(resource));
	return Object.freeze({
		kind: "resources",
		type,
		when,
		regions,
		readOnly,
		map: (context: MapperContext, resource: Resource) => map(context, decoded(resource)),
	});
}

/** Decodes the data on first access: mappers that only read IDs and owners never pay for it. */
class OwnDecoded<Desc extends DescMessage> implements Decoded<Desc> {
	readonly resource: Resource;
	readonly #type: ResourceType<Desc>;
	#data: Decoded<Desc>["data"] | undefined;

	constructor(type: ResourceType<Desc>, resource: Resource) {
		this.#type = type;
		this.resource = resource;
	}

	get data(): Decoded<Desc>["data"] {
		this.#data ??= decode(this.#type, this.resource).data;
		return this.#data;
	}
}

class SharedDecoded<Desc extends DescMessage> implements Decoded<Desc> {
	readonly resource: Resource;
	readonly #type: ResourceType<Desc>;

	constructor(type: ResourceType<Desc>, resource: Resource) {
		this.#type = type;
		this.resource = resource;
	}

	get data(): Decoded<Desc>["data"] {
		return decodeShared(this.#type, this.resource).data;
	}
}

/** The context of the source of a custom watch. */
export interface SourceContext {
	readonly client: ResourceClient;
	readonly logger: Logger;
	readonly clock: Clock;
	/** What the run works on. Events for other resources are dropped. */
	readonly share: Share;
	/** Aborts when the run ends; the source must end then. */
	readonly signal: AbortSignal;
}

/** An external event. Of several queued events with the same key, only the latest is mapped. */
export interface KeyedEvent<Event> {
	readonly key: string;
	readonly event: Event;
}

/** How external events become requests. */
export interface CustomWatchOptions<Event> {
	/** Opens the stream of events after the cache is primed. Its end is not a failure; an error ends the run. */
	readonly source: (context: SourceContext) => AsyncIterable<KeyedEvent<Event>>;
	/** Maps an event to the managed resources that it concerns. */
	readonly map: (context: MapperContext, event: Event) => MapResult;
}

/** A watch of something other than resources. */
export interface CustomWatch {
	readonly kind: "custom";
	readonly name: string;
	/** Opens the stream of events, each as a function that maps it. */
	readonly source: (context: SourceContext) => AsyncIterable<KeyedEvent<MapEvent>>;
}

/** Maps one event, bound to it. */
export type MapEvent = (context: MapperContext) => MapResult;

/** Watches something other than resources; `name` identifies the watch in logs and state. */
export function watchEvents<Event>(name: string, options: CustomWatchOptions<Event>): CustomWatch {
	const { source, map } = options;
	return Object.freeze({
		kind: "custom",
		name,
		async *source(context: SourceContext) {
			for await (const { key, event } of source(context)) {
				yield {
					key,
					event: (mapper: MapperContext): Iterable<ID> | Promise<Iterable<ID>> =>
						map(mapper, event),
				};
			}
		},
	});
}
