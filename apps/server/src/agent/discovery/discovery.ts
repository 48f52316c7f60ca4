import type { ServerTarget } from "@plinth/forwarding";
import type { Clock, Logger, Random } from "@plinth/runtime";
import type { Resolver } from "./resolver.ts";

/** The number of servers that an agent accepts from discovery. */
export const maxDiscovered = 100;

/** Finds the servers of an agent, again and again. */
export interface Discovery {
	status(): DiscoveryStatus;
	/** Looks now. Resolves when what was found has been applied or refused. */
	check(): Promise<void>;
	/** Looks no more. */
	close(): void;
}

/** What was found, and when. */
export interface DiscoveryStatus {
	/** Where servers are found, as in the setting. */
	readonly source: string;
	/** The number of servers that were found last. */
	readonly servers: number;
	/** When they were found last, in milliseconds since the epoch; `undefined` if never. */
	readonly foundAtMs: number | undefined;
	/** Why the last attempt has found nothing, so that the servers from before are used; empty if it has found some. */
	readonly problem: string;
	/** The number of attempts that have found nothing. */
	readonly failures: number;
}

/** What a discovery uses. */
export interface DiscoveryContext {
	readonly clock: Clock;
	readonly random: Random;
	readonly logger: Logger;
	readonly resolver: Resolver;
	/** Uses these servers in place of those from before. Called only if there is at least one. */
	readonly apply: (servers: readonly ServerTarget[]) => void;
}
