export type { ConnectionOptions, PlinthTransportOptions } from "./options.ts";
export { createPlinthTransport, type PlinthTransport } from "./transport.ts";
