import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import {
	type OfferedType,
	OfferedTypeSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { decodeShared, gvkKey, idOf, type TypeRegistry, typeOf } from "@plinth/resource";
import type { StorageBackend } from "@plinth/storage";
import type { ClusterIdentity } from "../records/cluster-identity.ts";
import { Record, recordId } from "../records/peering-records.ts";
import { acceptsCredential, type Peer } from "../trust/peer-access.ts";
import { Export, Peering, typeProblem } from "../types.ts";
import { untilChanged } from "./follow-resource.ts";
import { TypeExport } from "./type-export.ts";

/** An export, as it is offered to one peer; or what is offered of a partition to one region. */
export interface OfferedExport {
	/** Changes with the content of the Export, or with what is offered. */
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
	const receiver = { kind: "peer", cluster: peer.cluster } as const;
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
				exports.push(new TypeExport({ type, definition, exported, own, receiver }));
			} catch (error) {
				problem = error instanceof Error ? error.message : String(error);
			}
		}
		types.push(create(OfferedTypeSchema, { type: exported.type, problem }));
	}
	return { generation: `${stored.id?.uid}/${stored.generation}`, types, exports };
}

/** With what a stream to a peer was opened. */
export interface StreamedTo {
	readonly peer: Peer;
	/** The name of the Export. */
	readonly name: string;
	readonly generation: string;
}

/** What must stay as it is for a stream to go on: the Export, the Peering and its credential. */
function requirementsOf({ peer, name, generation }: StreamedTo) {
	return [
		{
			of: { type: typeOf(Export.type), name },
			isMet: (stored: Resource) => `${stored.id?.uid}/${stored.generation}` === generation,
		},
		{
			of: { type: typeOf(Peering.type), name: peer.name },
			isMet: ({ id }: Resource) => id?.uid === peer.peeringId,
		},
		{
			of: { type: typeOf(Record.type), name: recordId("exporting", peer.peeringId).name },
			isMet: (stored: Resource) => acceptsCredential(stored, peer.credentialHash),
		},
	];
}

/** What is said of a stream that may not go on. */
export const exportChanged = "the Export, the Peering or its credential has changed";

/** Resolves when the Export, the Peering or its credential is no longer the one with which a stream was opened. */
export async function untilExportChanged(
	backend: Pick<StorageBackend, "watchList">,
	streamed: StreamedTo,
	signal: AbortSignal,
): Promise<string> {
	const changes = requirementsOf(streamed).map(({ of, isMet }) =>
		untilChanged(backend, of, isMet, signal),
	);
	await Promise.race(changes);
	return exportChanged;
}

/** Whether a stream may still go on. Watches may be told of a change later than those of resources. */
export async function isExported(
	backend: Pick<StorageBackend, "lookup">,
	streamed: StreamedTo,
): Promise<boolean> {
	for (const { of, isMet } of requirementsOf(streamed)) {
		const stored = await backend.lookup(of);
		if (stored === undefined || !isMet(stored)) {
			return false;
		}
	}
	return true;
}
