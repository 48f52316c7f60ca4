import { Code, ConnectError } from "@connectrpc/connect";
import type {
	StreamRequest,
	StreamResponse,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { newUlid } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { peeringLimits } from "../limits.ts";
import type { OfferedExport } from "./offered-export.ts";
import { SendWindow } from "./send-window.ts";
import { type StreamExportOptions, streamExport } from "./stream-export.ts";

/** Who receives streams: a peer, or another region. */
export interface StreamReceiver {
	/** Identifies it. */
	readonly id: string;
	/** A name without a slash. */
	readonly name: string;
	/** How many streams it may have at the same time. */
	readonly maxStreams: number;
	/** How many types a stream may have. */
	readonly maxTypes: number;
}

/** The streams of one Export to one peer, or of one partition to one region, since this server has started. */
export interface StreamedExport {
	/** The name of the Peering, or the region. */
	readonly peer: string;
	/** The name of the Export, or the partition. */
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
	readonly receiver: StreamReceiver;
	readonly export: string;
	readonly window: SendWindow;
}

/** A stream to be opened. */
export interface OpenedStream extends Pick<StreamExportOptions, "changed" | "signal"> {
	readonly receiver: StreamReceiver;
	readonly request: StreamRequest;
	readonly offered: OfferedExport & { readonly incarnation: string };
}

/** The open streams of a server, and what they have sent. */
export class OpenStreams {
	readonly #backend: StorageBackend;
	readonly #runtime: Runtime;
	readonly #open = new Map<string, OpenStream>();
	/** The messages of streams that have ended, by the names of the receiver and the export. */
	readonly #ended = new Map<string, number>();

	constructor(backend: StorageBackend, runtime: Runtime) {
		this.#backend = backend;
		this.#runtime = runtime;
	}

	/** @throws ConnectError Aborted if the export has changed; ResourceExhausted; InvalidArgument. */
	async *open({
		receiver,
		request,
		offered,
		changed,
		signal,
	}: OpenedStream): AsyncGenerator<StreamResponse, void, undefined> {
		const { windowMessages, windowBytes, acknowledgeMs } = peeringLimits;
		if (request.generation !== offered.generation || request.incarnation !== offered.incarnation) {
			throw new ConnectError("what is offered has changed: describe it again", Code.Aborted);
		}
		const open = [...this.#open.values()].filter((each) => each.receiver.id === receiver.id);
		if (open.length >= receiver.maxStreams) {
			throw new ConnectError(
				`${receiver.name} has ${receiver.maxStreams} streams, which is the limit: end some of them`,
				Code.ResourceExhausted,
			);
		}
		const limits = { messages: windowMessages, bytes: windowBytes, acknowledgeMs };
		const window = new SendWindow(limits, this.#runtime.clock);
		const streamId = newUlid(this.#runtime);
		this.#open.set(streamId, { receiver, export: request.export, window });
		try {
			yield* streamExport({
				...{ backend: this.#backend, runtime: this.#runtime, exports: offered.exports },
				...{ maxTypes: receiver.maxTypes, request, changed, streamId, window, signal },
			});
		} finally {
			this.#open.delete(streamId);
			const key = keyOf(receiver.name, request.export);
			this.#ended.set(key, (this.#ended.get(key) ?? 0) + window.sent);
		}
	}

	/** @throws ConnectError NotFound if the receiver has no such stream here. */
	acknowledge(receiverId: string, streamId: string, sequence: bigint): void {
		const open = this.#open.get(streamId);
		if (open?.receiver.id !== receiverId) {
			throw new ConnectError("no such stream at this server: stream again", Code.NotFound);
		}
		open.window.acknowledge(sequence);
	}

	/** The streams that are or were open, by receiver and export. */
	get state(): readonly StreamedExport[] {
		const open = [...this.#open.values()];
		const keys = open.map(({ receiver, export: name }) => keyOf(receiver.name, name));
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
