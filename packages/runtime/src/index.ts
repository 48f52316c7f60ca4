export { aborted } from "./aborted.ts";
export { type Attachment, attachment } from "./attachment.ts";
export { Backoff, type BackoffOptions, type BackoffPolicy, backoffDelayMs } from "./backoff.ts";
export { type Clock, sleep, systemClock, type Timer } from "./clock.ts";
export { type CodePosition, codeFrame } from "./code-frame.ts";
export { ByteQueue } from "./collections/byte-queue.ts";
export { LinkedList, type ListEntry } from "./collections/linked-list.ts";
export { type Deadline, Deadlines } from "./deadlines.ts";
export { type EventLoop, EventLoopScheduler } from "./event-loop-scheduler.ts";
export {
	decodeFence,
	encodeFence,
	type Fence,
	type LeaseHold,
	type LeaseManager,
} from "./lease.ts";
export { type LinkedSignal, linkedSignal } from "./linked-signal.ts";
export { LocalLeases } from "./local-leases.ts";
export { LocalTimedLeases, type LocalTimedLeasesOptions } from "./local-timed-leases.ts";
export { type Logger, type LogMethod, silentLogger } from "./logger.ts";
export { type Random, systemRandom } from "./random.ts";
export { RenewedHold, type RenewedHoldContext } from "./renewed-hold.ts";
export { type RetryOptions, retry } from "./retry.ts";
export { type Runtime, systemRuntime } from "./runtime.ts";
export { type Scheduler, scheduleAfterInput } from "./scheduler.ts";
export { SuspendableLeases } from "./suspendable-leases.ts";
export { systemScheduler } from "./system-scheduler.ts";
export { type TimedLeases, TooManyLeases } from "./timed-leases.ts";
export { unlessAborted } from "./unless-aborted.ts";
