export type { Outcome, RetryReason } from "./call/call-environment.ts";
export {
	createForwarder,
	type ForwardedMethod,
	type Forwarder,
	type ForwarderOptions,
	type ForwarderPosition,
	type ForwardingObserver,
	type ServerStatus,
} from "./forwarder.ts";
export type { Fields, InboundCall, InboundListener } from "./inbound-call.ts";
export type { ForwardingLimits } from "./limits.ts";
export type { HealthOptions, HealthState } from "./servers/server-health.ts";
export type { ServerTarget } from "./servers/server-target.ts";
export type { WatchMethod } from "./watches/scanned-message.ts";
export type { WriteMethod } from "./writes/write-condition.ts";
