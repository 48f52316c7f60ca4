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

/** The faults in what clients observe, which the checks must detect. */
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

/** The chance of a fault at each occasion: a few times per run. */
const share = 0.02;

/** The client with one kind of fault, at random moments decided by the seed. */
export function withFault(
	client: ResourceClient,
	fault: PlantedFault,
	random: Random,
): ResourceClient {
	const occurs = () => random.next() < share;
	switch (fault) {
		case "dropped event":
			return withEvents(client, (event) => (isChange(event) && occurs() ? [] : [event]));
		case "doubled event":
			return withEvents(client, (event) =>
				isChange(event) && occurs() ? [event, event] : [event],
			);
		case "swapped events":
			return withSwappedEvents(client, occurs);
		case "stale strong read":
			return withStaleReads(client, true, occurs);
		case "stale eventual read":
			return withStaleReads(client, false, occurs);
		case "lost write":
			return withLostWrites(client, occurs);
		case "conflict that was none":
			return withFalseConflicts(client, occurs);
	}
}

/** The methods of a client as properties, for spreading. */
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
function withSwappedEvents(client: ResourceClient, occurs: () => boolean): ResourceClient {
	return {
		...partsOf(client),
		async *watchList(request, options) {
			let held: WatchEvent | undefined;
			for await (const event of client.watchList(request, options)) {
				if (held === undefined && isChange(event) && event.version !== "" && occurs()) {
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

/** A read returns the response of the previous one. */
function withStaleReads(
	client: ResourceClient,
	strong: boolean,
	occurs: () => boolean,
): ResourceClient {
	const responses = new Map<string, ReadResponse>();
	return {
		...partsOf(client),
		async read(request, options) {
			const name = request.id?.name ?? "";
			const before = responses.get(name);
			const isStrong = new Headers(options?.headers).has("x-plinth-consistency-mode");
			if (isStrong === strong && before !== undefined && occurs()) {
				return before;
			}
			const response = await client.read(request, options);
			responses.set(name, response);
			return response;
		},
	};
}

/** A write succeeds without being executed. */
function withLostWrites(client: ResourceClient, occurs: () => boolean): ResourceClient {
	return {
		...partsOf(client),
		async write(request, options) {
			if (request.resource?.version && occurs()) {
				const { resource } = await client.read({ id: request.resource.id ?? {} }, options);
				const version = String(Number(resource?.version) + 1);
				const written = create(ResourceSchema, request.resource);
				return create(WriteResponseSchema, { resource: { ...written, version } });
			}
			return client.write(request, options);
		},
	};
}

/** A write is executed, but fails with a conflict. */
function withFalseConflicts(client: ResourceClient, occurs: () => boolean): ResourceClient {
	return {
		...partsOf(client),
		async write(request, options) {
			const response = await client.write(request, options);
			if (occurs()) {
				throw new ConnectError(
					"CAS operation failed because the given version doesn't match what is stored",
					Code.Aborted,
				);
			}
			return response;
		},
	};
}
