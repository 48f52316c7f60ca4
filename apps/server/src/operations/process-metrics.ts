import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import type { Meter } from "@opentelemetry/api";

const nanosecondsPerSecond = 1e9;

/**
 * Creates the instruments of the process: memory, CPU time and the delay of the event loop.
 *
 * @returns a function that stops the measurements.
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
			description: "The delay of the event loop since the last scrape, 99th percentile",
		})
		.addCallback((result) => {
			result.observe(delay.percentile(99) / nanosecondsPerSecond);
			delay.reset();
		});
	return () => delay.disable();
}
