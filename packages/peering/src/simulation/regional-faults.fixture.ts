import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import { NamespaceSchema } from "@plinth/proto";
import { encodeData, Namespace } from "@plinth/resource";
import {
	decorateBackend,
	type Mutation,
	type StorageBackend,
	type WatchEvent,
} from "@plinth/storage";
import { Good } from "./goods.fixture.ts";

/** Faults that the simulation of two regions must detect. */
export const regionalFaults = [
	"policies are not asked",
	"streams outlive their policy",
	"copies stay when the policy goes",
	"copies have no region",
	"resumes lose what has changed meanwhile",
	"a region that is not found counts as deleted",
	"positions are stored without their copies",
] as const;

/** One of them. */
export type RegionalFault = (typeof regionalFaults)[number];

/** The storage of a region with a fault. */
export function withRegionalFault(
	backend: StorageBackend,
	fault: RegionalFault | undefined,
	mayFail: () => void,
): StorageBackend {
	switch (fault) {
		case "policies are not asked":
			return decorateBackend(backend, {
				async list(query, options) {
					const list = await backend.list(query, options);
					return query.type.kind === Namespace.type.kind
						? { ...list, resources: list.resources.map(offeredToAll) }
						: list;
				},
				watchList: (query, options) =>
					query.type.kind === Namespace.type.kind
						? withPolicies(backend.watchList(query, options))
						: backend.watchList(query, options),
			});
		case "streams outlive their policy":
			return decorateBackend(backend, {
				watchList: (query, options) =>
					["Namespace", "Partition"].includes(query.type.kind)
						? silent(options?.signal)
						: backend.watchList(query, options),
			});
		case "copies stay when the policy goes":
			return decorateBackend(backend, {
				commit(mutations, options) {
					const isLost = !mutations.some(isRecord);
					const kept = mutations.filter((each) => !(isLost && isRemovalOfCopy(each)));
					return backend.commit(kept, options);
				},
			});
		case "copies have no region":
			return decorateBackend(backend, {
				commit: (mutations, options) => backend.commit(mutations.map(withoutRegion), options),
			});
		case "positions are stored without their copies":
			return decorateBackend(backend, {
				async commit(mutations, options) {
					const others = mutations.filter((each) => !isRecord(each));
					if (others.length === 0 || others.length === mutations.length) {
						return backend.commit(mutations, options);
					}
					const result = await backend.commit(mutations.filter(isRecord), options);
					mayFail();
					await backend.commit(others, options);
					return result;
				},
			});
		default:
			return backend;
	}
}

function isRecord(mutation: Mutation): boolean {
	return mutation.op === "put" && mutation.resource.id?.type?.kind === "PeeringRecord";
}

function isRemovalOfCopy(mutation: Mutation): boolean {
	return mutation.op === "delete" && mutation.id.region !== undefined;
}

function withoutRegion(mutation: Mutation): Mutation {
	if (mutation.op !== "put" || mutation.resource.id?.type?.kind !== Good.type.kind) {
		return mutation;
	}
	const { region: _, ...id } = mutation.resource.id;
	return { ...mutation, resource: { ...mutation.resource, id } };
}

function offeredToAll(resource: Resource): Resource {
	const data = create(NamespaceSchema, { copies: { regions: ["west", "east"] } });
	return { ...resource, data: encodeData(NamespaceSchema, data) };
}

async function* withPolicies(events: AsyncIterable<WatchEvent>): AsyncGenerator<WatchEvent> {
	for await (const event of events) {
		yield event.kind === "upsert" ? { ...event, resource: offeredToAll(event.resource) } : event;
	}
}

/** A watch that never says anything. */
async function* silent(signal: AbortSignal | undefined): AsyncGenerator<WatchEvent> {
	await new Promise<void>((resolve) => {
		signal?.addEventListener("abort", () => resolve(), { once: true });
	});
	signal?.throwIfAborted();
}
