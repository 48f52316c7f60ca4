export type { OpenStream } from "@plinth/transport";
export { createInProcessClient } from "./client.ts";
export { interceptUnary } from "./interceptors/server-interceptors.ts";
export type { InProcessTransportOptions, RouterOptions } from "./options.ts";
export { stopIterator } from "./streams/stop-iterator.ts";
export { createInProcessTransport, type InProcessTransport } from "./transport.ts";
