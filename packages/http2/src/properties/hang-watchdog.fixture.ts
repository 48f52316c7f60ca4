/**
 * Watches a loop from a thread of its own: the loop writes a new number into shared memory when it goes on. If the
 * number stays the same for a minute, not even an endless loop of the process keeps this thread from ending it.
 */
import { writeSync } from "node:fs";
import { isMainThread, Worker, workerData } from "node:worker_threads";

const hangMs = 60_000;

/** Starts to watch. The caller terminates the thread. */
export function startWatchdog(progress: Int32Array): Worker {
	return new Worker(new URL(import.meta.url), { workerData: progress });
}

if (!isMainThread && workerData instanceof Int32Array) {
	watch(workerData);
}

function watch(progress: Int32Array): void {
	let last = -1;
	setInterval(() => {
		const number = Atomics.load(progress, 0);
		if (number === last) {
			writeSync(2, `seed ${number} hangs: PLINTH_SEED=${number} PLINTH_RUNS=1 replays it\n`);
			process.kill(process.pid, "SIGKILL");
		}
		last = number;
	}, hangMs);
}
