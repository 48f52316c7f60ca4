import { Code, ConnectError } from "@connectrpc/connect";
import type { GetExportResponse } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import type { ImportingRecord } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import type { ConnectPeer } from "../connect.ts";
import { peeringLimits, protocolVersion } from "../limits.ts";
import { type ExchangeClient, exchangeClient } from "../trust/peer-credentials.ts";
import { encodeCredential, peerHeader } from "../trust/peer-header.ts";
import { checkOffered } from "./check-offered.ts";
import { ImportRefused, type ImportSource } from "./import-source.ts";

/** Options of `peerSource`. */
export interface PeerSourceOptions {
	/** The Peering as it is declared. The credential is not sent to this address, but to where it was established. */
	readonly peering: {
		readonly name: string;
		/** Whether there is a Peering of that name. */
		readonly isDeclared: boolean;
		readonly address: string;
		readonly ca: string;
	};
	/** The name of the Export at the peer, and the partition of the import. */
	readonly target: () => { readonly export: string; readonly partition: string };
	/** The credential of the peering as it is now; `undefined` if it is not established. */
	readonly credential: () => Promise<ImportingRecord | undefined>;
	readonly ownCluster: string;
	readonly connect: ConnectPeer;
}

/** An Export of a peer. */
export function peerSource(options: PeerSourceOptions): ImportSource {
	const { peering, target, ownCluster, connect } = options;
	return {
		name: peering.name,
		async dial(signal) {
			const known = await credentialOf(options);
			const { address, ca, cluster } = known;
			const connection = connect({ address, ca });
			const client = exchangeClient(connection);
			const headers = { [peerHeader]: encodeCredential(known.peeringId, known.credential) };
			const call = { headers, signal, timeoutMs: peeringLimits.callMs };
			const { export: name, partition } = target();
			return {
				async describe() {
					const offered = await describe(client, name, call);
					const peer = { peering: peering.name, peerCluster: cluster, ownCluster };
					return { offered, cluster, place: { kind: "peer", partition, ...peer } };
				},
				stream: (request) =>
					client.stream({ protocolVersion, export: name, ...request }, { headers, signal }),
				acknowledge: (streamId, sequence) => client.acknowledge({ streamId, sequence }, call),
				close: () => connection.close(),
			};
		},
	};
}

/** @throws ImportRefused. */
async function credentialOf({ peering, credential }: PeerSourceOptions): Promise<ImportingRecord> {
	const known = await credential();
	if (known === undefined || known.credential === "") {
		throw new ImportRefused(
			"PeeringMissing",
			peering.isDeclared
				? `the peering ${peering.name} has no credential: run plinth peering establish with a token of the other cluster`
				: `there is no peering ${peering.name} here: run plinth peering establish - --name ${peering.name} with a token of the other cluster`,
		);
	}
	if (known.address !== peering.address || known.ca !== peering.ca) {
		throw new ImportRefused(
			"AddressChanged",
			`the address or the certificates of the peering ${peering.name} are not those for which its credential was established: set them back, or run plinth peering establish with a new token of the other cluster`,
		);
	}
	return known;
}

async function describe(
	client: ExchangeClient,
	name: string,
	options: {
		readonly headers: Readonly<Record<string, string>>;
		readonly signal: AbortSignal;
		readonly timeoutMs: number;
	},
): Promise<GetExportResponse> {
	try {
		return checkOffered(await client.getExport({ protocolVersion, export: name }, options));
	} catch (failure) {
		if (failure instanceof ConnectError && failure.code === Code.NotFound) {
			throw new ImportRefused(
				"ExportMissing",
				`the other cluster has no Export of the name ${name} whose peers name this cluster`,
			);
		}
		throw failure;
	}
}
