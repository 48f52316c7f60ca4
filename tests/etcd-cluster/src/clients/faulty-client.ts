import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type ReadResponse,
	ResourceSchema,
	type WatchEvent,
	WriteResponseSchema,
} from "@plinth/proto";
import type { Random } from "@plinth/runtime";
import type { ResourceClient } from "./life.ts";

/** What can be wrong with what clients see, and must not go unnoticed. */
export const plantedFaults = [
	"dropped event",
	"doubled event",
	"swapped events",
	"stale strong read",
	"stale eventual read",
	"lost write",
	"conflict that was none",
] as const;

/** One of them. */
export type PlantedFault = (typeof plantedFaults)[number];

/** How often an occasion to go wrong is taken: a few times a run. */
const share = 0.02;

/** The client, but that it goes wrong in one way now and then, as the seed decides. */
export function withFault(
	client: ResourceClient,
	fault: PlantedFault,
	random: Random,
): ResourceClient {
	const strikes = () => random.next() < share;
	switch (fault) {
		case "dropped event":
			return withEvents(client, (event) => (isChange(event) && strikes() ? [] : [event]));
		case "doubled event":
			return withEvents(client, (event) =>
				isChange(event) && strikes() ? [event, event] : [event],
			);
		case "swapped events":
			return withSwappedEvents(client, strikes);
		case "stale strong read":
			return withStaleReads(client, true, strikes);
		case "stale eventual read":
			return withStaleReads(client, false, strikes);
		case "lost write":
			return withLostWrites(client, strikes);
		case "conflict that was none":
			return withFalseConflicts(client, strikes);
	}
}

/** Its methods are no properties of its own. */
function partsOf(client: ResourceClient): ResourceClient {
	return {
		read: (request, options) => client.read(request, options),
		write: (request, options) => client.write(request, options),
		delete: (request, options) => client.delete(request, options),
		list: (request, options) => client.list(request, options),
		watchList: (request, options) => client.watchList(request, options),
	};
}

function isChange({ event }: WatchEvent): boolean {
	return event.case === "upsert" || event.case === "delete";
}

function withEvents(
	client: ResourceClient,
	change: (event: WatchEvent) => readonly WatchEvent[],
): ResourceClient {
	return {
		...partsOf(client),
		async *watchList(request, options) {
			for await (const event of client.watchList(request, options)) {
				yield* change(event);
			}
		},
	};
}

/** Two neighbours change places; within a snapshot, whose order says nothing, none do. */
function withSwappedEvents(client: ResourceClient, strikes: () => boolean): ResourceClient {
	return {
		...partsOf(client),
		async *watchList(request, options) {
			let held: WatchEvent | undefined;
			for await (const event of client.watchList(request, options)) {
				if (held === undefined && isChange(event) && event.version !== "" && strikes()) {
					held = event;
					continue;
				}
				yield event;
				if (held !== undefined) {
					yield held;
					held = undefined;
				}
			}
		},
	};
}

/** A read answers what the one before it was answered. */
function withStaleReads(
	client: ResourceClient,
	strong: boolean,
	strikes: () => boolean,
): ResourceClient {
	const answers = new Map<string, ReadResponse>();
	return {
		...partsOf(client),
		async read(request, options) {
			const name = request.id?.name ?? "";
			const before = answers.get(name);
			const isStrong = new Headers(options?.headers).has("x-plinth-consistency-mode");
			if (isStrong === strong && before !== undefined && strikes()) {
				return before;
			}
			const answer = await client.read(request, options);
			answers.set(name, answer);
			return answer;
		},
	};
}

/** A write is answered as if it had been done, and was not. */
function withLostWrites(client: ResourceClient, strikes: () => boolean): ResourceClient {
	return {
		...partsOf(client),
		async write(request, options) {
			if (request.resource?.version && strikes()) {
				const { resource } = await client.read({ id: request.resource.id ?? {} }, options);
				const version = String(Number(resource?.version) + 1);
				const answered = create(ResourceSchema, request.resource);
				return create(WriteResponseSchema, { resource: { ...answered, version } });
			}
			return client.write(request, options);
		},
	};
}

/** A write is done, and its caller is told that it conflicted. */
function withFalseConflicts(client: ResourceClient, strikes: () => boolean): ResourceClient {
	return {
		...partsOf(client),
		async write(request, options) {
			const answer = await client.write(request, options);
			if (strikes()) {
				throw new ConnectError(
					"CAS operation failed because the given version doesn't match what is stored",
					Code.Aborted,
				);
			}
			return answer;
		},
	};
}
