import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type OfferedType,
	OfferedTypeSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { decodeShared, gvkKey, idOf, type TypeRegistry } from "@plinth/resource";
import type { StorageBackend } from "@plinth/storage";
import type { ClusterIdentity } from "../records/cluster-identity.ts";
import type { Peer } from "../trust/peer-access.ts";
import { Export, typeProblem } from "../types.ts";
import { TypeExport } from "./type-export.ts";

/** An export, as it is offered to one peer. */
export interface OfferedExport {
	/** Changes with the content of the Export. */
	readonly generation: string;
	readonly types: readonly OfferedType[];
	/** Those that can be streamed. */
	readonly exports: readonly TypeExport[];
}

/** The cluster that offers an export. */
export interface OfferedBy {
	readonly backend: Pick<StorageBackend, "lookup">;
	readonly registry: Pick<TypeRegistry, "get">;
	readonly own: ClusterIdentity;
}

/**
 * The export of that name for a peer.
 *
 * @throws ConnectError NotFound, whether there is none or it names other peers.
 */
export async function offeredExport(
	{ backend, registry, own }: OfferedBy,
	peer: Peer,
	name: string,
): Promise<OfferedExport> {
	const stored = await backend.lookup(idOf(Export, name), { consistency: "strong" });
	const definition = stored && decodeShared(Export, stored).data;
	if (stored === undefined || definition === undefined || !definition.peers.includes(peer.name)) {
		throw new ConnectError(
			`no Export of the name ${JSON.stringify(name.slice(0, 100))} for this peer`,
			Code.NotFound,
		);
	}
	const types: OfferedType[] = [];
	const exports: TypeExport[] = [];
	for (const exported of definition.types) {
		if (exported.type === undefined) {
			continue;
		}
		const type = registry.get(exported.type);
		let problem = typeProblem(type, gvkKey(exported.type)) ?? "";
		if (type !== undefined && problem === "") {
			try {
				exports.push(new TypeExport({ type, definition, exported, own, receiver: peer.cluster }));
			} catch (error) {
				problem = error instanceof Error ? error.message : String(error);
			}
		}
		types.push(create(OfferedTypeSchema, { type: exported.type, problem }));
	}
	return { generation: `${stored.id?.uid}/${stored.generation}`, types, exports };
}
