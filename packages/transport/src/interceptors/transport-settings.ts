import type { Interceptor } from "@connectrpc/connect";
import type { Clock } from "@plinth/runtime";

/** What all calls of a client's transport have in common. */
export interface TransportSettings {
	/** The clock of deadlines. */
	readonly clock: Clock;
	/** The first is the outermost. */
	readonly interceptors: readonly Interceptor[];
	/** The base of the URLs that interceptors see, without a trailing slash. */
	readonly baseUrl: string;
	/** The timeout of calls that set none, in milliseconds. */
	readonly defaultTimeoutMs?: number | undefined;
}
