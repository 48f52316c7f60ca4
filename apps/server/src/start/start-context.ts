import type { Logger, Runtime } from "@plinth/runtime";
import type { CallLimits } from "../limits/call-limits.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import type { Module } from "../module/define-module.ts";
import type { ServerOptions } from "../server-options.ts";

/** The parts of a server that its start uses. */
export interface StartOptions {
	readonly options: ServerOptions;
	readonly logger: Logger;
	/** Whether external calls are accepted. */
	readonly acceptsCalls: () => boolean;
	/** Called when a part has failed that the server can't run without. */
	readonly fail: (failure: unknown) => void;
	/** Ends streams with its reason. */
	readonly streamsEnd: AbortSignal;
	/** Aborts calls that have not finished when the time for a stop is over. */
	readonly callsEnd: AbortController;
	/** Interrupts a start that loads the storage or waits for other deployments. */
	readonly startEnd: AbortSignal;
}

/** The context of each step of a start: the options, with their defaults. */
export interface StartContext extends StartOptions {
	readonly modules: readonly Module[];
	readonly runtime: Runtime;
	readonly limits: ListenerLimits;
	readonly callLimits: CallLimits;
	readonly stopLimitMs: number;
	/** Each step defers the stop of what it has started. */
	readonly started: AsyncDisposableStack;
}
