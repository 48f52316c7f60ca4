import type { Interceptor } from "@connectrpc/connect";
import type { Clock } from "@plinth/runtime";

/** The caller's side of a transport: what its calls have in common. */
export interface CallerSide {
	/** The clock of deadlines. */
	readonly clock: Clock;
	/** The first is the outermost. */
	readonly interceptors: readonly Interceptor[];
	/** The base of the URLs that interceptors see, without a trailing slash. */
	readonly baseUrl: string;
	/** The timeout of calls that set none, in milliseconds. */
	readonly defaultTimeoutMs?: number | undefined;
}
