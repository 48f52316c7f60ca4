import type { Protocol } from "./protocols/protocol.ts";
import type { Route } from "./route.ts";

/** How this package serves a call, as determined by the call's head. */
export interface PlannedCall {
	readonly route: Route;
	readonly protocol: Protocol;
	readonly timeoutMs: number | undefined;
	/** Returns the bytes of the message in the query of a GET; absent if the message is in the body. */
	readonly query: (() => Uint8Array) | undefined;
}
