import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type ReadResponse,
	ResourceSchema,
	type WatchEvent,
	WriteResponseSchema,
} from "@plinth/proto";
import type { Random } from "@plinth/runtime";
import { isStreamFault, streamFaults, withStreamFault } from "@plinth/test-support";
import type { ResourceClient } from "./life.ts";

/** The faults in what clients observe, which the checks must detect. */
export const plantedFaults = [
	...streamFaults,
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
	if (isStreamFault(fault)) {
		const struck = fault === "swapped events" ? isLive : isChange;
		return {
			...partsOf(client),
			watchList: (request, options) =>
				withStreamFault(
					client.watchList(request, options),
					fault,
					(event) => struck(event) && occurs(),
				),
		};
	}
	switch (fault) {
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

/** Not within a snapshot, which is unordered. */
function isLive(event: WatchEvent): boolean {
	return isChange(event) && event.version !== "";
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
