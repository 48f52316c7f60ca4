export { createInProcessClient } from "./client.ts";
export { interceptUnary } from "./interceptors/server-interceptors.ts";
export type { InProcessTransportOptions, RouterOptions } from "./options.ts";
export type { InProcessTransport, OpenStream } from "./streams/open-stream.ts";
export { stopIterator } from "./streams/stop-iterator.ts";
export { createInProcessTransport } from "./transport.ts";
