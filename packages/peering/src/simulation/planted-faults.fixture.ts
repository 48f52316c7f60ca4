import { create } from "@bufbuild/protobuf";
import { OriginSchema, type Resource } from "@plinth/proto";
import { ExportSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import { decode, encodeData } from "@plinth/resource";
import { decorateBackend, type StorageBackend, type WatchEvent } from "@plinth/storage";
import { Export } from "../types.ts";
import { Good } from "./goods.fixture.ts";

/** Faults that the simulation must detect. */
export const plantedFaults = [
	"resumes lose what has changed meanwhile",
	"what is sent again is written again",
	"exports are not filtered",
	"copies are not removed",
	"copies are exported as originals",
	"positions are stored without their copies",
] as const;

/** One of them. */
export type PlantedFault = (typeof plantedFaults)[number];

/** The storage of a cluster with a fault. */
export function withFault(
	backend: StorageBackend,
	fault: PlantedFault | undefined,
	mayFail: () => void,
): StorageBackend {
	switch (fault) {
		case "what is sent again is written again":
			return decorateBackend(backend, {
				async lookup(name, options) {
					const stored = await backend.lookup(name, options);
					return stored !== undefined && isCopy(stored)
						? { ...stored, metadata: { ...stored.metadata, changed: "yes" } }
						: stored;
				},
			});
		case "exports are not filtered":
			return decorateBackend(backend, {
				async lookup(name, options) {
					const stored = await backend.lookup(name, options);
					return stored?.id?.type?.kind === "Export" ? withoutFilter(stored) : stored;
				},
			});
		case "copies are not removed":
			return decorateBackend(backend, {
				commit: (mutations, options) =>
					backend.commit(
						mutations.filter((each) => !(each.op === "delete" && each.id.type?.kind === "Good")),
						options,
					),
			});
		case "copies are exported as originals":
			return decorateBackend(backend, {
				watchList: (query, options) =>
					query.type.kind === "Good"
						? withoutPaths(backend.watchList(query, options))
						: backend.watchList(query, options),
			});
		case "positions are stored without their copies":
			return decorateBackend(backend, {
				async commit(mutations, options) {
					const isRecord = (each: (typeof mutations)[number]) =>
						each.op === "put" && each.resource.id?.type?.kind === "PeeringRecord";
					const record = mutations.filter(isRecord);
					const others = mutations.filter((each) => !isRecord(each));
					if (record.length === 0 || others.length === 0) {
						return backend.commit(mutations, options);
					}
					const result = await backend.commit(record, options);
					mayFail();
					await backend.commit(others, options);
					return result;
				},
			});
		default:
			return backend;
	}
}

function isCopy({ id, origin }: Resource): boolean {
	return origin !== undefined && id?.type?.kind === Good.type.kind;
}

function withoutFilter(stored: Resource): Resource {
	const { data } = decode(Export, stored);
	const types = data.types.map((each) => ({ ...each, namePrefixes: [] }));
	return { ...stored, data: encodeData(ExportSchema, create(ExportSchema, { ...data, types })) };
}

async function* withoutPaths(events: AsyncIterable<WatchEvent>): AsyncGenerator<WatchEvent> {
	for await (const event of events) {
		yield "resource" in event && event.resource.origin !== undefined
			? {
					...event,
					resource: {
						...event.resource,
						origin: create(OriginSchema, { ...event.resource.origin, path: [] }),
					},
				}
			: event;
	}
}
