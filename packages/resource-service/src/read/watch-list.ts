import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Resource, WatchEvent, WatchListRequest } from "@plinth/proto";
import { namePrefixProblem, type ResourceType } from "@plinth/resource";
import { nextReadyOf, type ReadyIterator } from "@plinth/rpc-server";
import type { WatchEvent as StoredEvent } from "@plinth/storage";
import { authenticateCall } from "../access/authenticate-call.ts";
import { decideList, enforce } from "../access/authorization.ts";
import { ReadFilter } from "../access/read-filter.ts";
import { requireWholeType, wholeTypeHeader } from "../access/whole-type.ts";
import { malformedValue } from "../errors/refusal.ts";
import { consistencyOf } from "../requests/headers.ts";
import { notBeforeHeader, reachPosition } from "../requests/position.ts";
import { queryRegion } from "../requests/regions.ts";
import { queryTenancy, requireType, resolveType } from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";
import { bookmark, type EventEncoding, endOfSnapshot } from "./event-encoding.ts";

/** The interval of bookmarks on a stream that sends nothing else, while the storage changes. */
const bookmarkIntervalMs = 5_000;

/** The stream of one WatchList call: the current resources, then each change that the caller may see. */
export class WatchList
	implements AsyncIterableIterator<WatchEvent, undefined>, ReadyIterator<WatchEvent>
{
	readonly #context: ServiceContext;
	readonly #request: WatchListRequest;
	readonly #call: HandlerContext;
	readonly #explain: (failure: unknown) => unknown;
	/** Whether the first bookmark of a watch that resumes is sent at once. To be set before the first call of `next`. */
	bookmarkOnResume = false;
	#opened: Opened | undefined;
	#inSnapshot: boolean;
	/**
	 * A live event that does not end its revision. It is held back until the next event, which is already
	 * available: if the next one ends the revision but is filtered out, this one carries the version instead.
	 */
	#held: WatchEvent | undefined;
	/** The next message, after an event that was held back. */
	#ready: WatchEvent | undefined;

	/** @param explain - maps a failure to the error that the caller receives. */
	constructor(
		context: ServiceContext,
		request: WatchListRequest,
		call: HandlerContext,
		explain: (failure: unknown) => unknown,
	) {
		this.#context = context;
		this.#request = request;
		this.#call = call;
		this.#explain = explain;
		this.#inSnapshot = request.afterVersion === "";
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	/** Must not be called concurrently. Connect reads a stream one message at a time. */
	async next(): Promise<IteratorResult<WatchEvent, undefined>> {
		try {
			this.#opened ??= await open(this.#context, this.#request, this.#call, this.bookmarkOnResume);
			const { view, events } = this.#opened;
			for (;;) {
				let message = this.#takeReady();
				if (message === undefined) {
					const { done, value } = await events.next();
					if (done) {
						return { done: true, value: undefined };
					}
					message = this.#follow(value, view.eventFor(value));
				}
				this.throwIfTokenEnded();
				if (message !== undefined) {
					return { done: false, value: message };
				}
			}
		} catch (failure) {
			throw this.#failed(failure);
		}
	}

	/** The next message if it is available; `undefined` if `next` would wait, or if the stream has ended. */
	nextReady(): WatchEvent | undefined {
		const opened = this.#opened;
		if (opened === undefined) {
			return undefined;
		}
		try {
			for (;;) {
				let message = this.#takeReady();
				if (message === undefined) {
					const event = opened.nextReady();
					if (event === undefined) {
						return undefined;
					}
					message = this.#follow(event, opened.view.eventFor(event));
				}
				this.throwIfTokenEnded();
				if (message !== undefined) {
					return message;
				}
			}
		} catch (failure) {
			throw this.#failed(failure);
		}
	}

	#takeReady(): WatchEvent | undefined {
		const message = this.#ready;
		this.#ready = undefined;
		return message;
	}

	/**
	 * Must be called before a message that was returned earlier is sent: what was read with the caller's token must not be
	 * sent after the token has ended.
	 *
	 * @throws ConnectError Unauthenticated, or the reason for which the access has ended.
	 */
	throwIfTokenEnded(): void {
		const opened = this.#opened;
		if (opened?.ended?.aborted) {
			void opened.events.return?.();
			throw tokenEnded(opened.ended);
		}
	}

	#failed(failure: unknown): unknown {
		const ended = this.#opened?.ended;
		return this.#explain(ended?.aborted ? tokenEnded(ended) : failure);
	}

	async return(): Promise<IteratorResult<WatchEvent, undefined>> {
		await this.#opened?.events.return?.();
		return { done: true, value: undefined };
	}

	/** The message to send after an event; `seen` is its form for the caller, absent if filtered out. */
	#follow(event: StoredEvent, seen: WatchEvent | undefined): WatchEvent | undefined {
		const held = this.#held;
		if (event.kind === "end-of-snapshot") {
			this.#inSnapshot = false;
		}
		if (seen === undefined) {
			if (held === undefined || event.version === undefined) {
				return undefined;
			}
			this.#held = undefined;
			// Other watches may have received the same message without a version.
			return { ...held, version: event.version };
		}
		this.#held = undefined;
		if (event.version === undefined && !this.#inSnapshot) {
			this.#held = seen;
			return held;
		}
		if (held === undefined) {
			return seen;
		}
		this.#ready = seen;
		return held;
	}
}

/** The error of a watch whose access has ended: the reason, if the authorizer has given an error. */
function tokenEnded({ reason }: AbortSignal): ConnectError {
	if (reason instanceof ConnectError) {
		return reason;
	}
	return new ConnectError(
		"the token has expired or was revoked: watch again with a valid token",
		Code.Unauthenticated,
	);
}

/** A watch of the storage, and the caller's view of it. */
interface Opened {
	readonly view: View;
	readonly events: AsyncIterator<StoredEvent>;
	/** The next event if it is available without waiting. */
	readonly nextReady: () => StoredEvent | undefined;
	/** Aborts when the caller's token expires or is revoked. */
	readonly ended: AbortSignal | undefined;
}

async function open(
	context: ServiceContext,
	request: WatchListRequest,
	call: HandlerContext,
	bookmarkOnResume: boolean,
): Promise<Opened> {
	const named = requireType(request.type, "type");
	const type = resolveType(context.registry, named);
	const tenancy = queryTenancy(type, request.tenancy);
	const problem = namePrefixProblem(request.namePrefix);
	if (problem !== undefined) {
		throw malformedValue("name_prefix", problem, request.namePrefix);
	}
	const region = queryRegion(context.region, request.region);
	const consistency = consistencyOf(call);
	const access = await authenticateCall(context.authorizer, call);
	enforce(decideList(type, access, tenancy));
	if (call.requestHeader.has(wholeTypeHeader)) {
		requireWholeType(type, access);
	}
	if (call.requestHeader.has(notBeforeHeader)) {
		await reachPosition(context, call);
	}
	const { ended } = access;
	const events = context.backend.watchList(
		{ type: type.type, tenancy, namePrefix: request.namePrefix, ...region },
		{
			signal: ended === undefined ? call.signal : AbortSignal.any([call.signal, ended]),
			consistency,
			heldBy: context.isInternal ? {} : { subject: access.subject },
			...(request.afterVersion && { afterVersion: request.afterVersion }),
			...(request.bookmarks && { bookmarkIntervalMs, bookmarkOnResume }),
		},
	);
	const readFilter = new ReadFilter(context.registry, access);
	const { jsonForms, eventEncoding } = context;
	const view = new View(type, readFilter, jsonForms.formFor(call), eventEncoding);
	const iterator = events[Symbol.asyncIterator]();
	// The iterators of decorated backends have no `nextReady`.
	const nextReady = nextReadyOf(iterator) ?? (() => undefined);
	return { view, events: iterator, nextReady, ended };
}

/**
 * One caller's view of the events of a type family: resources of one group version that the caller may read. A
 * resource that leaves the view is reported as deleted.
 */
class View {
	readonly #type: ResourceType;
	readonly #readFilter: ReadFilter;
	readonly #show: (resource: Resource) => Resource;
	readonly #encoding: EventEncoding;

	constructor(
		type: ResourceType,
		readFilter: ReadFilter,
		show: (resource: Resource) => Resource,
		encoding: EventEncoding,
	) {
		this.#type = type;
		this.#readFilter = readFilter;
		this.#show = show;
		this.#encoding = encoding;
	}

	/** The event for the caller; `undefined` if it is filtered out. */
	eventFor(event: StoredEvent): WatchEvent | undefined {
		switch (event.kind) {
			case "end-of-snapshot":
				return endOfSnapshot(event.version);
			case "bookmark":
				return bookmark(event.version);
			case "delete":
				return this.#has(event.resource)
					? this.#encoding.deletion(event, this.#show(event.resource))
					: undefined;
			case "upsert":
				if (this.#has(event.resource)) {
					return this.#encoding.upsert(event, this.#show(event.resource));
				}
				return event.previous !== undefined && this.#has(event.previous)
					? this.#encoding.deletion(event, this.#show(event.previous))
					: undefined;
		}
	}

	#has(resource: Resource): boolean {
		return (
			resource.id?.type?.groupVersion === this.#type.type.groupVersion &&
			this.#readFilter.allows(resource)
		);
	}
}
