import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type {
	PeerExchangeService,
	StreamRequest,
	StreamResponse,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { newUlid, type TypeRegistry } from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { type OfferedExport, offeredExport } from "../export/offered-export.ts";
import { SendWindow } from "../export/send-window.ts";
import { streamExport } from "../export/stream-export.ts";
import { peeringLimits } from "../limits.ts";
import type { OwnIdentity } from "../records/cluster-identity.ts";
import { checkVersion, type Peer, type PeerAccess } from "../trust/peer-access.ts";
import { explainFailure } from "./explain-failure.ts";

/** Options of `createExchangeService`. */
export interface ExchangeServiceOptions {
	readonly backend: StorageBackend;
	readonly registry: TypeRegistry;
	readonly identity: OwnIdentity;
	readonly access: PeerAccess;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** Called when a peer has exchanged its token. */
	readonly onEstablished: (peer: Peer) => void;
}

/** What clusters of other owners call. It shows them what is exported to them, and takes nothing but acknowledgments. */
export function createExchangeService(
	options: ExchangeServiceOptions,
): ServiceImpl<typeof PeerExchangeService> {
	const { identity, access, logger } = options;
	const streams = new ExportStreams(options);
	const explain = async <T>(work: () => Promise<T>): Promise<T> => {
		try {
			return await work();
		} catch (failure) {
			throw explainFailure(failure, logger);
		}
	};
	return {
		exchangeToken: (request) =>
			explain(async () => {
				options.onEstablished(await access.exchange(request));
				return { cluster: (await identity.get()).uid };
			}),
		rotateCredential: ({ credentialHash }, call) =>
			explain(async () => {
				await access.rotate(call, Uint8Array.from(credentialHash));
				return {};
			}),
		getExport: ({ protocolVersion, export: name }, call) =>
			explain(async () => {
				const peer = await access.authenticate(call);
				checkVersion(protocolVersion);
				const { generation, types, incarnation } = await streams.offered(peer, name);
				return { generation, incarnation, types: [...types] };
			}),
		async *stream(request, call) {
			try {
				yield* streams.open(request, call);
			} catch (failure) {
				throw explainFailure(failure, logger);
			}
		},
		acknowledge: ({ streamId, sequence }, call) =>
			explain(async () => {
				streams.acknowledge(await access.authenticate(call), streamId, sequence);
				return {};
			}),
	};
}

/** The open streams of all peers. */
class ExportStreams {
	readonly #options: ExchangeServiceOptions;
	readonly #open = new Map<string, { readonly peeringId: string; readonly window: SendWindow }>();

	constructor(options: ExchangeServiceOptions) {
		this.#options = options;
	}

	/** The export of that name for a peer. @throws ConnectError NotFound. */
	async offered(
		peer: Peer,
		name: string,
	): Promise<OfferedExport & { readonly incarnation: string }> {
		const { backend, registry, identity } = this.#options;
		const own = await identity.get();
		const offered = await offeredExport({ backend, registry, own }, peer, name);
		return { ...offered, incarnation: own.incarnation };
	}

	/** @throws ConnectError Aborted if the export has changed; ResourceExhausted; as `authenticate`. */
	async *open(
		request: StreamRequest,
		call: HandlerContext,
	): AsyncGenerator<StreamResponse, void, undefined> {
		const { backend, runtime, access } = this.#options;
		const { windowMessages, windowBytes, acknowledgeMs, streamsPerPeer } = peeringLimits;
		const peer = await access.authenticate(call);
		checkVersion(request.protocolVersion);
		const offered = await this.offered(peer, request.export);
		if (request.generation !== offered.generation || request.incarnation !== offered.incarnation) {
			throw new ConnectError("the Export has changed: describe it again", Code.Aborted);
		}
		const open = [...this.#open.values()].filter(({ peeringId }) => peeringId === peer.peeringId);
		if (open.length >= streamsPerPeer) {
			throw new ConnectError(
				`the peer has ${streamsPerPeer} streams, which is the limit: end some of them`,
				Code.ResourceExhausted,
			);
		}
		const limits = { messages: windowMessages, bytes: windowBytes, acknowledgeMs };
		const window = new SendWindow(limits, runtime.clock);
		const streamId = newUlid(runtime);
		this.#open.set(streamId, { peeringId: peer.peeringId, window });
		try {
			const { signal } = call;
			yield* streamExport({ backend, runtime, peer, offered, request, streamId, window, signal });
		} finally {
			this.#open.delete(streamId);
		}
	}

	/** @throws ConnectError NotFound if the peer has no such stream here. */
	acknowledge({ peeringId }: Peer, streamId: string, sequence: bigint): void {
		const open = this.#open.get(streamId);
		if (open?.peeringId !== peeringId) {
			throw new ConnectError("no such stream at this server: stream again", Code.NotFound);
		}
		open.window.acknowledge(sequence);
	}
}
