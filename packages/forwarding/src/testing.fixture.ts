/** What the tests of other packages use. Not published. */
export { createForwarderOn } from "./forwarder.ts";
export type { Connections, Place } from "./servers/server-network.ts";
export { WatchPosition } from "./watches/watch-position.ts";
