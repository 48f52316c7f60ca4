import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type {
	StreamRequest,
	StreamResponse,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { newUlid, type TypeRegistry } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { peeringLimits } from "../limits.ts";
import type { OwnIdentity } from "../records/cluster-identity.ts";
import { checkVersion, type Peer, type PeerAccess } from "../trust/peer-access.ts";
import { type OfferedExport, offeredExport } from "./offered-export.ts";
import { SendWindow } from "./send-window.ts";
import { streamExport } from "./stream-export.ts";

/** Options of `ExportStreams`. */
export interface ExportStreamsOptions {
	readonly backend: StorageBackend;
	readonly registry: TypeRegistry;
	readonly identity: OwnIdentity;
	readonly access: PeerAccess;
	readonly runtime: Runtime;
}

/** The streams of one Export to one peer, since this server has started. */
export interface StreamedExport {
	/** The name of the Peering. */
	readonly peer: string;
	/** The name of the Export. */
	readonly export: string;
	/** Open streams. */
	readonly streams: number;
	/** Messages that were sent, heartbeats included. */
	readonly messages: number;
	/** Messages that were sent and not acknowledged. */
	readonly unacknowledged: number;
	/** How long ago the oldest of those was sent, in milliseconds; 0 if there is none. */
	readonly lagMs: number;
}

interface OpenStream {
	readonly peer: Peer;
	readonly export: string;
	readonly window: SendWindow;
}

/** The open streams of all peers. */
export class ExportStreams {
	readonly #options: ExportStreamsOptions;
	readonly #open = new Map<string, OpenStream>();
	/** The messages of streams that have ended, by the names of the peer and the Export. */
	readonly #ended = new Map<string, number>();

	constructor(options: ExportStreamsOptions) {
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
		const open = [...this.#open.values()].filter((each) => each.peer.peeringId === peer.peeringId);
		if (open.length >= streamsPerPeer) {
			throw new ConnectError(
				`the peer has ${streamsPerPeer} streams, which is the limit: end some of them`,
				Code.ResourceExhausted,
			);
		}
		const limits = { messages: windowMessages, bytes: windowBytes, acknowledgeMs };
		const window = new SendWindow(limits, runtime.clock);
		const streamId = newUlid(runtime);
		this.#open.set(streamId, { peer, export: request.export, window });
		try {
			const { signal } = call;
			yield* streamExport({ backend, runtime, peer, offered, request, streamId, window, signal });
		} finally {
			this.#open.delete(streamId);
			const key = keyOf(peer.name, request.export);
			this.#ended.set(key, (this.#ended.get(key) ?? 0) + window.sent);
		}
	}

	/** @throws ConnectError NotFound if the peer has no such stream here. */
	acknowledge({ peeringId }: Peer, streamId: string, sequence: bigint): void {
		const open = this.#open.get(streamId);
		if (open?.peer.peeringId !== peeringId) {
			throw new ConnectError("no such stream at this server: stream again", Code.NotFound);
		}
		open.window.acknowledge(sequence);
	}

	/** The streams that are or were open, by peer and Export. */
	get state(): readonly StreamedExport[] {
		const open = [...this.#open.values()];
		const keys = open.map(({ peer, export: name }) => keyOf(peer.name, name));
		return [...new Set([...this.#ended.keys(), ...keys])].sort().map((key) => {
			const [peer = "", name = ""] = key.split("/");
			const windows = open.flatMap(({ window }, at) => (keys[at] === key ? [window] : []));
			const sum = (of: (window: SendWindow) => number) =>
				windows.reduce((total, window) => total + of(window), 0);
			return {
				...{ peer, export: name, streams: windows.length },
				messages: (this.#ended.get(key) ?? 0) + sum(({ sent }) => sent),
				unacknowledged: sum(({ unacknowledged }) => unacknowledged),
				lagMs: Math.max(0, ...windows.map(({ oldestMs }) => oldestMs)),
			};
		});
	}
}

/** Names of resources have no slash. */
function keyOf(peer: string, exported: string): string {
	return `${peer}/${exported}`;
}
