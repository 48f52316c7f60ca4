import type {
	GetExportResponse,
	StreamResponse,
	TypePosition,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import type { CopyPlace } from "./incoming-copy.ts";
import type { ImportState } from "./live-import.ts";

/** Where an import comes from: a peer, or another region. */
export interface ImportSource {
	/** Opens a connection. @throws ImportRefused; the failures of a storage. */
	dial(signal: AbortSignal): Promise<DialedSource>;
	/** The cluster or the region, for messages. */
	readonly name: string;
}

/** A connection to a source. Its calls end with the signal with which it was dialed. */
export interface DialedSource {
	/** @throws ImportRefused if nothing is offered; ConnectError. */
	describe(): Promise<DescribedSource>;
	/** @throws ConnectError. */
	stream(options: {
		readonly generation: string;
		readonly incarnation: string;
		readonly positions: TypePosition[];
	}): AsyncIterable<StreamResponse>;
	/** @throws ConnectError. */
	acknowledge(streamId: string, sequence: bigint): Promise<unknown>;
	close(): void;
}

/** What a source offers. */
export interface DescribedSource {
	/** Its generation and incarnation are of a limited length: each commit has them. */
	readonly offered: Pick<GetExportResponse, "generation" | "incarnation" | "types">;
	/** The uid of the cluster that is copied from. */
	readonly cluster: string;
	readonly place: CopyPlace;
}

/** An import can't be streamed: its state says why. */
export class ImportRefused extends Error {
	override readonly name = "ImportRefused";
	readonly state: ImportState;

	constructor(state: ImportState, message: string) {
		super(message);
		this.state = state;
	}
}
