import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Resource, WatchEvent, WatchListRequest } from "@plinth/proto";
import { namePrefixProblem, type ResourceType } from "@plinth/resource";
import type { WatchEvent as StoredEvent } from "@plinth/storage";
import { decideList, enforce } from "../access/authorization.ts";
import { Readable } from "../access/readable.ts";
import { malformedValue } from "../errors/refusal.ts";
import { authenticateCall, consistencyOf } from "../requests/headers.ts";
import { queryTenancy, requireType, resolveType } from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";

/** How often a stream with bookmarks says how far it has come, if it says nothing else. */
const bookmarkEveryMs = 5_000;

/** What there is, and then each change, of one query, as one caller may see it. */
export class WatchList implements AsyncIterableIterator<WatchEvent, undefined> {
	readonly #context: ServiceContext;
	readonly #request: WatchListRequest;
	readonly #call: HandlerContext;
	readonly #explain: (failure: unknown) => unknown;
	#opened: Opened | undefined;
	#inSnapshot: boolean;
	/**
	 * A live event that does not end its revision, held back until the next one, which is there
	 * already: where that one is out of view and ends the revision, this one carries the version in
	 * its place.
	 */
	#held: WatchEvent | undefined;
	/** What goes out after an event that was held back. */
	#ready: WatchEvent | undefined;

	/** @param explain - makes what the caller is told of what was thrown. */
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

	/** One call at a time: that is how Connect reads a stream. */
	async next(): Promise<IteratorResult<WatchEvent, undefined>> {
		try {
			this.#opened ??= await open(this.#context, this.#request, this.#call);
			const { view, events, ended } = this.#opened;
			for (;;) {
				let message = this.#ready;
				this.#ready = undefined;
				if (message === undefined) {
					const { done, value } = await events.next();
					if (done) {
						return { done: true, value: undefined };
					}
					message = this.#follow(value, view.see(value));
				}
				// What the storage had handed out before must not go out after the token has ended.
				if (ended?.aborted) {
					await events.return?.();
					throw noLongerGood();
				}
				if (message !== undefined) {
					return { done: false, value: message };
				}
			}
		} catch (failure) {
			throw this.#explain(this.#opened?.ended?.aborted ? noLongerGood() : failure);
		}
	}

	async return(): Promise<IteratorResult<WatchEvent, undefined>> {
		await this.#opened?.events.return?.();
		return { done: true, value: undefined };
	}

	/** What goes out now that an event has come, which the caller sees so, or not at all. */
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
			held.version = event.version;
			return held;
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

function noLongerGood(): ConnectError {
	return new ConnectError(
		"the token is no longer good: watch again with another",
		Code.Unauthenticated,
	);
}

/** A watch of the storage, and what of it the caller sees. */
interface Opened {
	readonly view: View;
	readonly events: AsyncIterator<StoredEvent>;
	/** Aborts when the caller's token is no longer good. */
	readonly ended: AbortSignal | undefined;
}

async function open(
	context: ServiceContext,
	request: WatchListRequest,
	call: HandlerContext,
): Promise<Opened> {
	const named = requireType(request.type, "type");
	const type = resolveType(context.registry, named);
	const tenancy = queryTenancy(type, request.tenancy);
	const problem = namePrefixProblem(request.namePrefix);
	if (problem !== undefined) {
		throw malformedValue("name_prefix", problem, request.namePrefix);
	}
	const consistency = consistencyOf(call);
	const access = await authenticateCall(context.authorizer, call);
	enforce(decideList(type, access, tenancy));
	const { ended } = access;
	const events = context.backend.watchList(
		{ type: type.type, tenancy, namePrefix: request.namePrefix },
		{
			signal: ended === undefined ? call.signal : AbortSignal.any([call.signal, ended]),
			consistency,
			heldBy: context.isInternal ? {} : { subject: access.subject },
			...(request.afterVersion && { afterVersion: request.afterVersion }),
			...(request.bookmarks && { bookmarkEveryMs }),
		},
	);
	const readable = new Readable(context.registry, access);
	const view = new View(type, readable, context.jsonForms.shownTo(call));
	return { view, events: events[Symbol.asyncIterator](), ended };
}

/**
 * The part of a type family's events that one caller sees: resources of one group version that it
 * may read. What leaves the view is seen as deleted.
 */
class View {
	readonly #type: ResourceType;
	readonly #readable: Readable;
	readonly #show: (resource: Resource) => Resource;

	constructor(type: ResourceType, readable: Readable, show: (resource: Resource) => Resource) {
		this.#type = type;
		this.#readable = readable;
		this.#show = show;
	}

	/** The event as the caller sees it, if it does. */
	see(event: StoredEvent): WatchEvent | undefined {
		switch (event.kind) {
			case "end-of-snapshot":
				return message({ case: "endOfSnapshot", value: endOfSnapshot }, event.version);
			case "bookmark":
				return message({ case: "bookmark", value: bookmark }, event.version);
			case "delete":
				return this.#has(event.resource)
					? deletion(this.#show(event.resource), event.version)
					: undefined;
			case "upsert":
				if (this.#has(event.resource)) {
					return upsert(this.#show(event.resource), event.version);
				}
				return event.previous !== undefined && this.#has(event.previous)
					? deletion(this.#show(event.previous), event.version)
					: undefined;
		}
	}

	#has(resource: Resource): boolean {
		return (
			resource.id?.type?.groupVersion === this.#type.type.groupVersion &&
			this.#readable.has(resource)
		);
	}
}

const endOfSnapshot = Object.freeze({
	$typeName: "plinth.resource.v1.WatchEvent.EndOfSnapshot" as const,
});

const bookmark = Object.freeze({ $typeName: "plinth.resource.v1.WatchEvent.Bookmark" as const });

function upsert(resource: Resource, version: string | undefined): WatchEvent {
	return message(
		{ case: "upsert", value: { $typeName: "plinth.resource.v1.WatchEvent.Upsert", resource } },
		version,
	);
}

function deletion(resource: Resource, version: string | undefined): WatchEvent {
	return message(
		{ case: "delete", value: { $typeName: "plinth.resource.v1.WatchEvent.Delete", resource } },
		version,
	);
}

function message(event: WatchEvent["event"], version = ""): WatchEvent {
	return { $typeName: "plinth.resource.v1.WatchEvent", event, version };
}
