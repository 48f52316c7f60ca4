export type { InProcessTransportOptions, RouterOptions } from "./options.ts";
export { createInProcessTransport } from "./transport.ts";
