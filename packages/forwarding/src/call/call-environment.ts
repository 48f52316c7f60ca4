import type { Clock, Deadlines, Logger, Random } from "@plinth/runtime";
import type { ForwardingLimits } from "../limits.ts";
import type { ListServers } from "../pages/list-servers.ts";
import type { ClusterPosition } from "../positions/cluster-position.ts";
import type { Server } from "../servers/server.ts";
import type { CallPurpose } from "../servers/server-network.ts";
import type { WatchMethod } from "../watches/scanned-message.ts";
import type { WriteMethod } from "../writes/write-condition.ts";
import type { KeptBytes } from "./kept-bytes.ts";

/** How a forwarded call ended: by the response of a server, by an error of the agent, or by its client. */
export type Outcome = "completed" | "failed" | "canceled";

/**
 * Why a call was sent again: no server had begun it, it changes nothing, or it is a write with a condition that no longer
 * holds once it was executed.
 */
export type RetryReason = "not_begun" | "read" | "conditional_write";

/** What is known about the method of a call: see `ForwardedMethod`. */
export interface CallMethod {
	readonly isRepeatable: boolean;
	readonly isStream: boolean;
	/** Whether it is known to have one request and one response. */
	readonly isUnary: boolean;
	readonly hasPosition?: boolean;
	readonly hasPages?: boolean;
	readonly write?: WriteMethod;
	readonly watch?: WatchMethod;
}

/** What all calls of clients share, or all calls of the agent itself. */
export interface CallEnvironment {
	readonly purpose: CallPurpose;
	readonly agent: string;
	/** The credential of the agent, as it is now. */
	readonly credential: () => string;
	readonly limits: ForwardingLimits;
	readonly memory: KeptBytes;
	/** The memory for the requests of watches that are open. */
	readonly watchRequests: KeptBytes;
	readonly position: ClusterPosition;
	readonly lists: ListServers<Server>;
	readonly clock: Clock;
	readonly random: Random;
	readonly deadlines: Deadlines;
	readonly logger: Logger;
	/** The server for a call; `undefined` if none can be used. */
	choose(tried: ReadonlySet<Server>): Server | undefined;
	/** Why there is no server for a call. */
	noServer(): string;
	retried(reason: RetryReason): void;
	/** A watch that was cut off is sent to a server. */
	watchMoved(): void;
}
