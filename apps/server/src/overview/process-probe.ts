import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { getHeapStatistics } from "node:v8";
import type { Clock, Timer } from "@plinth/runtime";

/** What the process uses. */
export interface ProcessReading {
	/** Since the probe was created, in milliseconds. */
	readonly uptimeMs: number;
	/** CPU time since the start of the process, in milliseconds. */
	readonly cpuMs: number;
	/** The 99th percentile since the last reading, in milliseconds; `undefined` for the first one in a while. */
	readonly eventLoopDelayMs: number | undefined;
	readonly residentBytes: number;
	readonly heapUsedBytes: number;
	readonly heapLimitBytes: number;
}

/** The delay of the event loop is measured for so long after a reading: a server that nobody looks at measures nothing. */
const measuredForMs = 60_000;

const nanosecondsPerMillisecond = 1e6;

/** Reads what the process uses. */
export class ProcessProbe implements Disposable {
	readonly #clock: Clock;
	readonly #startedMs: number;
	readonly #delay = monitorEventLoopDelay({ resolution: 20 });
	/** Ends the measurement; `undefined` while there is none. */
	#end: Timer | undefined;

	constructor(clock: Clock) {
		this.#clock = clock;
		this.#startedMs = clock.monotonic();
	}

	read(): ProcessReading {
		const { rss, heapUsed } = process.memoryUsage();
		const { user, system } = process.cpuUsage();
		return {
			uptimeMs: this.#clock.monotonic() - this.#startedMs,
			cpuMs: (user + system) / 1_000,
			eventLoopDelayMs: this.#takeDelay(),
			residentBytes: rss,
			heapUsedBytes: heapUsed,
			heapLimitBytes: getHeapStatistics().heap_size_limit,
		};
	}

	[Symbol.dispose](): void {
		this.#end?.cancel();
		this.#end = undefined;
		this.#delay.disable();
	}

	/** The delay since the last reading. It is measured until the next one, but not for long. */
	#takeDelay(): number | undefined {
		const delayMs =
			this.#end === undefined || this.#delay.count === 0
				? undefined
				: this.#delay.percentile(99) / nanosecondsPerMillisecond;
		this.#end?.cancel();
		this.#delay.reset();
		this.#delay.enable();
		this.#end = this.#clock.setTimer(measuredForMs, () => this[Symbol.dispose]());
		return delayMs;
	}
}
