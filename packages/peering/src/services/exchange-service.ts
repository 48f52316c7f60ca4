import {
	Code,
	type ConnectError,
	type HandlerContext,
	type ServiceImpl,
} from "@connectrpc/connect";
import type { PeerExchangeService } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import type { Logger } from "@plinth/runtime";
import type { ExportStreams } from "../export/export-streams.ts";
import type { OwnIdentity } from "../records/cluster-identity.ts";
import { checkVersion, type Peer, type PeerAccess } from "../trust/peer-access.ts";
import { explainFailure } from "./explain-failure.ts";

/** Options of `createExchangeService`. */
export interface ExchangeServiceOptions {
	readonly streams: ExportStreams;
	readonly identity: OwnIdentity;
	readonly access: PeerAccess;
	readonly logger: Logger;
	/** Returns the error for a call whose token or credential is wrong, in place of the one that says so. */
	readonly wrongCredential: (call: HandlerContext, failure: ConnectError) => ConnectError;
	/** Called when a peer has exchanged its token. */
	readonly onEstablished: (peer: Peer) => void;
}

/** What clusters of other owners call. It shows them what is exported to them, and takes nothing but acknowledgments. */
export function createExchangeService(
	options: ExchangeServiceOptions,
): ServiceImpl<typeof PeerExchangeService> {
	const { streams, identity, access, logger } = options;
	const explained = (failure: unknown, call: HandlerContext) => {
		const error = explainFailure(failure, logger);
		return error.code === Code.Unauthenticated ? options.wrongCredential(call, error) : error;
	};
	const explain = async <T>(call: HandlerContext, work: () => Promise<T>): Promise<T> => {
		try {
			return await work();
		} catch (failure) {
			throw explained(failure, call);
		}
	};
	return {
		exchangeToken: (request, call) =>
			explain(call, async () => {
				options.onEstablished(await access.exchange(request));
				return { cluster: (await identity.get()).uid };
			}),
		rotateCredential: ({ credentialHash }, call) =>
			explain(call, async () => {
				await access.rotate(call, Uint8Array.from(credentialHash));
				return {};
			}),
		getExport: ({ protocolVersion, export: name }, call) =>
			explain(call, async () => {
				const peer = await access.authenticate(call);
				checkVersion(protocolVersion);
				const { generation, types, incarnation } = await streams.offered(peer, name);
				return { generation, incarnation, types: [...types] };
			}),
		async *stream(request, call) {
			try {
				yield* streams.open(request, call);
			} catch (failure) {
				throw explained(failure, call);
			}
		},
		acknowledge: ({ streamId, sequence }, call) =>
			explain(call, async () => {
				streams.acknowledge(await access.authenticate(call), streamId, sequence);
				return {};
			}),
	};
}
