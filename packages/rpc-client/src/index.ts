export type { ConnectionOptions, PlinthTransportOptions } from "./options.ts";
export {
	createPlinthTransport,
	type OneConnectionTransport,
	type PlinthTransport,
} from "./transport.ts";
