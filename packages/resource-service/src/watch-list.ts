import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Resource, WatchEvent, WatchListRequest } from "@plinth/proto";
import { namePrefixProblem, type ResourceType } from "@plinth/resource";
import type { WatchEvent as StoredEvent } from "@plinth/storage";
import { decideList, enforce } from "./authorization.ts";
import { accessOf, consistencyOf } from "./call.ts";
import { Readable } from "./readable.ts";
import { malformed } from "./refusal.ts";
import { queryTenancy, requireType, resolveType } from "./request-checks.ts";
import type { ServiceContext } from "./service-context.ts";

/** How long a stream with bookmarks is silent at most. */
const bookmarkEveryMs = 5_000;

/** What there is, and then each change, of one query, as one caller may see it. */
export async function* watchList(
	context: ServiceContext,
	request: WatchListRequest,
	call: HandlerContext,
): AsyncGenerator<WatchEvent> {
	const named = requireType(request.type, "type");
	const type = resolveType(context.registry, named);
	const tenancy = queryTenancy(type, request.tenancy);
	const problem = namePrefixProblem(request.namePrefix);
	if (problem !== undefined) {
		throw malformed("name_prefix", problem);
	}
	const consistency = consistencyOf(call);
	const access = await accessOf(context.authorizer, call);
	enforce(decideList(type, access, tenancy));
	const view = new View(type, new Readable(context.registry, access), (resource) =>
		context.jsonForms.shownTo(call, resource),
	);
	const signal =
		access.ended === undefined ? call.signal : AbortSignal.any([call.signal, access.ended]);
	const events = context.backend.watchList(
		{ type: type.type, tenancy, namePrefix: request.namePrefix },
		{
			signal,
			consistency,
			...(request.afterVersion && { afterVersion: request.afterVersion }),
			...(request.bookmarks && { bookmarkEveryMs }),
		},
	);
	try {
		yield* view.of(events, request.afterVersion === "");
	} catch (failure) {
		if (access.ended?.aborted) {
			throw new ConnectError(
				"the token is no longer good: watch again with another",
				Code.Unauthenticated,
			);
		}
		throw failure;
	}
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

	/**
	 * A live event that does not end its revision is held back until the next one, which is there
	 * already: where that one is out of view and ends the revision, the held one carries the version
	 * in its place.
	 */
	async *of(
		events: AsyncIterable<StoredEvent>,
		snapshotFirst: boolean,
	): AsyncGenerator<WatchEvent> {
		let inSnapshot = snapshotFirst;
		let held: WatchEvent | undefined;
		for await (const event of events) {
			const seen = this.#see(event);
			if (held !== undefined && (seen !== undefined || event.version !== undefined)) {
				if (seen === undefined) {
					held.version = event.version ?? "";
				}
				yield held;
				held = undefined;
			}
			if (seen === undefined) {
				continue;
			}
			if (event.kind === "end-of-snapshot") {
				inSnapshot = false;
			}
			if (event.version === undefined && !inSnapshot) {
				held = seen;
			} else {
				yield seen;
			}
		}
	}

	#see(event: StoredEvent): WatchEvent | undefined {
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
