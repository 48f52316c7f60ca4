export { createInProcessClient } from "./client.ts";
export type { InProcessTransport, OpenStream } from "./open-stream.ts";
export type { InProcessTransportOptions, RouterOptions } from "./options.ts";
export { createInProcessTransport } from "./transport.ts";
