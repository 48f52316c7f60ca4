export { createInProcessClient } from "./client.ts";
export type { InProcessTransportOptions, RouterOptions } from "./options.ts";
export type { InProcessTransport, OpenStream } from "./streams/open-stream.ts";
export { createInProcessTransport } from "./transport.ts";
