import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type {
	StreamRequest,
	StreamResponse,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import type { TypeRegistry } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { peeringLimits } from "../limits.ts";
import type { OwnIdentity } from "../records/cluster-identity.ts";
import { checkVersion, type Peer, type PeerAccess } from "../trust/peer-access.ts";
import {
	exportChanged,
	isExported,
	type OfferedExport,
	offeredExport,
	untilExportChanged,
} from "./offered-export.ts";
import { OpenStreams, type StreamedExport } from "./open-streams.ts";

/** Options of `ExportStreams`. */
export interface ExportStreamsOptions {
	readonly backend: StorageBackend;
	readonly registry: TypeRegistry;
	readonly identity: OwnIdentity;
	readonly access: PeerAccess;
	readonly runtime: Runtime;
}

/** The streams of Exports to peers. */
export class ExportStreams {
	readonly #options: ExportStreamsOptions;
	readonly #streams: OpenStreams;

	constructor(options: ExportStreamsOptions) {
		this.#options = options;
		this.#streams = new OpenStreams(options.backend, options.runtime);
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
		const { backend, access } = this.#options;
		const peer = await access.authenticate(call);
		checkVersion(request.protocolVersion);
		const offered = await this.offered(peer, request.export);
		const streamed = { peer, name: request.export, generation: offered.generation };
		const responses = this.#streams.open({
			receiver: {
				id: peer.peeringId,
				name: peer.name,
				maxStreams: peeringLimits.streamsPerPeer,
				maxTypes: peeringLimits.types,
			},
			...{ request, offered, signal: call.signal },
			changed: (signal) => untilExportChanged(backend, streamed, signal),
		});
		for await (const response of responses) {
			if (response.message.case === "upsert" && !(await isExported(backend, streamed))) {
				throw new ConnectError(`${exportChanged}: stream again`, Code.Aborted);
			}
			yield response;
		}
	}

	/** @throws ConnectError NotFound if the peer has no such stream here. */
	acknowledge({ peeringId }: Peer, streamId: string, sequence: bigint): void {
		this.#streams.acknowledge(peeringId, streamId, sequence);
	}

	/** The streams that are or were open, by peer and Export. */
	get state(): readonly StreamedExport[] {
		return this.#streams.state;
	}
}
