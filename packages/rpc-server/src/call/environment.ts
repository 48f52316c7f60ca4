import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import type { Clock, Deadlines } from "@plinth/runtime";
import type { CallObserver } from "../observers.ts";
import type { RunningCalls } from "./running-calls.ts";

/** The parts that all calls of a router share. */
export interface CallEnvironment {
	readonly clock: Clock;
	readonly deadlines: Deadlines;
	readonly observers: readonly CallObserver[];
	readonly running: RunningCalls;
	/** Reports a failure of an implementation that is not a ConnectError, and is therefore a bug. */
	readonly onFault: ((call: Pick<HandlerContext, "method">, failure: unknown) => void) | undefined;
	/** Corrects an error before it is sent. */
	readonly correctError: ((error: ConnectError) => void) | undefined;
}
