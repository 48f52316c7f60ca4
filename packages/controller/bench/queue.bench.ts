/**
 * Operations of the merging queue at a million keys, against what one would write without it: a Map
 * with a list of keys, and a platform timer for each delay. `--keys=1000000`
 */
import {
	ComparisonTable,
	heapUsed,
	interleaveSteps,
	nanosecondsPer,
	numberOption,
	type Steps,
} from "@plinth/bench";
import { systemClock } from "@plinth/runtime";
import { MergingQueue } from "../src/queue/merging-queue.ts";

/** Why work fails. */
const down = new Error("the service is down");

const count = numberOption("keys", 1_000_000, 1_000);
const keys = Array.from({ length: count }, (_, at) => `demo.Artist/default/default/artist-${at}`);
const timed = (run: () => void) => () => nanosecondsPer(count, run);

function createQueue(): MergingQueue<string> {
	return new MergingQueue<string>({
		clock: systemClock,
		backoff: { baseMs: 5, maxMs: 1_000_000 },
		onReady: () => {},
	});
}

function queueSteps(): Steps {
	const queue = createQueue();
	const addAll = () => {
		for (const key of keys) {
			queue.add(key, key, "live");
		}
	};
	return {
		"add a new key": timed(addAll),
		"add a key that waits": timed(addAll),
		"take and be done": timed(() => {
			for (let entry = queue.take(); entry !== undefined; entry = queue.take()) {
				queue.done(entry);
			}
		}),
		"add for later": timed(() => {
			for (const [at, key] of keys.entries()) {
				queue.add(key, key, "live", 60_000 + ((at * 7919) % count));
			}
		}),
		"bring forward to now": timed(addAll),
		"take and fail": async () => {
			const figure = await nanosecondsPer(count, () => {
				for (let entry = queue.take(); entry !== undefined; entry = queue.take()) {
					queue.fail(entry, down);
				}
			});
			queue.close();
			return figure;
		},
	};
}

function plainSteps(): Steps {
	const items = new Map<string, string>();
	const order: string[] = [];
	const timers: NodeJS.Timeout[] = [];
	return {
		"add a new key": timed(() => {
			for (const key of keys) {
				items.set(key, key);
				order.push(key);
			}
		}),
		"add a key that waits": timed(() => {
			for (const key of keys) {
				if (items.has(key)) {
					items.set(key, key);
				}
			}
		}),
		"take and be done": timed(() => {
			for (const key of order) {
				items.delete(key);
			}
			order.length = 0;
		}),
		"add for later": timed(() => {
			for (const [at, key] of keys.entries()) {
				timers.push(setTimeout(() => order.push(key), 60_000 + ((at * 7919) % count)));
			}
		}),
		"bring forward to now": timed(() => {
			for (const [at, timer] of timers.entries()) {
				clearTimeout(timer);
				order.push(keys[at] ?? "");
			}
		}),
		"take and fail": async () => {
			const figure = await nanosecondsPer(count, () => {
				for (const [at, key] of order.entries()) {
					timers[at] = setTimeout(() => order.push(key), 60_000);
				}
			});
			for (const timer of timers) {
				clearTimeout(timer);
			}
			return figure;
		},
	};
}

const table = new ComparisonTable(`Merging queue, ${count.toLocaleString("en-US")} keys`, "ns");
const figures = await interleaveSteps(
	{ queue: queueSteps, plain: plainSteps },
	{ rounds: 3, warmUpRounds: 1 },
);
for (const [step, ofStep] of Object.entries(figures)) {
	table.add(step, ofStep);
}
table.print();

const before = await heapUsed();
const queue = createQueue();
for (const key of keys) {
	queue.add(key, key, "live");
}
const bytesPerKey = ((await heapUsed()) - before) / count;
queue.close();
console.log(`\nHeap per ready key: ${Math.round(bytesPerKey)} bytes (keys not counted)`);
