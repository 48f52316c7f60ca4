import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import type { Meter } from "@opentelemetry/api";

const nanosecondsPerSecond = 1e9;

/**
 * Makes the instruments of the process: memory, CPU time and how late timers are.
 *
 * @returns what stops measuring.
 */
export function observeProcess(meter: Meter): () => void {
	const delay = monitorEventLoopDelay({ resolution: 20 });
	delay.enable();
	meter
		.createObservableGauge("plinth.process.memory.bytes", {
			description: "Memory of the process, by kind",
		})
		.addCallback((result) => {
			const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
			for (const [kind, bytes] of Object.entries({ rss, heapUsed, heapTotal, external })) {
				result.observe(bytes, { kind });
			}
		});
	meter
		.createObservableCounter("plinth.process.cpu.seconds", {
			description: "CPU time of the process",
		})
		.addCallback((result) => {
			const { user, system } = process.cpuUsage();
			result.observe((user + system) / 1e6);
		});
	meter
		.createObservableGauge("plinth.process.event_loop.delay.seconds", {
			description: "How late the event loop was since the last look, in the 99th percentile",
		})
		.addCallback((result) => {
			result.observe(delay.percentile(99) / nanosecondsPerSecond);
			delay.reset();
		});
	return () => delay.disable();
}
