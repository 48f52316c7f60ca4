import type { Client } from "@connectrpc/connect";
import type { ResourceService } from "@plinth/proto";

/** The resource API, as a client of a server sees it. */
export type ResourceClient = Pick<
	Client<typeof ResourceService>,
	"read" | "write" | "delete" | "list" | "watchList"
>;

/** A server from one start to the next end: what it tells is of one memory. */
export interface Life {
	/** Tells it from all others. */
	readonly number: number;
	readonly client: ResourceClient;
}

/** A server that may be down for a while. */
export interface Target {
	/** The life that it has, or has next; `undefined` if the signal aborts first. */
	life(signal: AbortSignal): Promise<Life | undefined>;
}
