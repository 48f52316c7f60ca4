export { nextReadyOf, type ReadyIterator } from "./call/ready-iterator.ts";
export type { BodySink, Carrier, HeaderFields, RequestHead } from "./carrier.ts";
export { CallValues } from "./context/call-values.ts";
export { shareEncodings } from "./messages/shared-encodings.ts";
export type { CallObserver, ObservedCall } from "./observers.ts";
export type { PlannedCall } from "./plan.ts";
export { createRpcRouter, type RpcRouter, type RpcRouterOptions } from "./router.ts";
