import type { Client } from "@connectrpc/connect";
import type { ResourceService } from "@plinth/proto";

/** The resource API, as a client of a server sees it. */
export type ResourceClient = Pick<
	Client<typeof ResourceService>,
	"read" | "write" | "delete" | "list" | "watchList"
>;

/** A server process from its start to its end, with one memory. */
export interface Life {
	/** Unique among all lives. */
	readonly number: number;
	readonly client: ResourceClient;
}

/** A server that may be down for a while. */
export interface Target {
	/** The current or next life; `undefined` if the signal aborts first. */
	life(signal: AbortSignal): Promise<Life | undefined>;
}
