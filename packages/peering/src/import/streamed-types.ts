import type { Type } from "@plinth/proto";
import type { GetExportResponse } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { gvkKey, type ResourceType, type TypeRegistry } from "@plinth/resource";
import { peeringLimits } from "../limits.ts";
import { typeProblem } from "../types.ts";

/** The longest name of a type of the peer that is kept, in characters. */
const typeLength = 200;

/** What an import requests of what is offered to it. */
export interface StreamedTypes {
	/** One of each family. */
	readonly types: readonly ResourceType[];
	/** The keys of the types that are left out, and why. */
	readonly refused: readonly { readonly key: string; readonly reason: string }[];
}

/**
 * The types to stream. Of several versions of one type that both sides have, the last one is requested: a region then streams
 * all of them.
 */
export function streamedTypes(
	offered: Pick<GetExportResponse, "types">,
	registry: Pick<TypeRegistry, "get">,
): StreamedTypes {
	const types = new Map<string, ResourceType>();
	const refused: { key: string; reason: string }[] = [];
	for (const { type, problem } of offered.types.slice(0, peeringLimits.offeredTypes)) {
		const key = keyOf(type);
		const registered = type && registry.get(type);
		const reason =
			problem === "" ? typeProblem(registered, key) : `in the other cluster: ${problem}`;
		if (registered !== undefined && reason === undefined) {
			types.set(registered.family, registered);
		} else {
			refused.push({ key: key.slice(0, typeLength), reason: reason ?? "" });
		}
	}
	return { types: [...types.values()], refused };
}

function keyOf(type: Type | undefined): string {
	return type === undefined ? "" : gvkKey(type);
}
