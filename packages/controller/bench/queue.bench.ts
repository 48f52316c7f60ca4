/**
 * Operations of the keyed queue at a million keys, against what one would write without it: a Map
 * with a list of keys, and a platform timer for each delay.
 */
import { systemClock } from "@plinth/runtime";
import { MergingQueue } from "../src/queue/merging-queue.ts";
import { heapUsed, printTable, type Row } from "./table.ts";

const count = Number(process.env.PLINTH_BENCH_KEYS ?? 1_000_000);
const keys = Array.from({ length: count }, (_, at) => `demo.Artist/default/default/artist-${at}`);

const rows: Row[] = [];

function measure(operation: string, ours: () => void, plain: () => void): void {
	const perSecond = (run: () => void) => {
		const startMs = performance.now();
		run();
		return (count / (performance.now() - startMs)) * 1000;
	};
	const plainPerSecond = perSecond(plain);
	const oursPerSecond = perSecond(ours);
	rows.push({
		operation,
		"queue/s": oursPerSecond,
		"plain/s": plainPerSecond,
		"plain ÷ queue": (plainPerSecond / oursPerSecond).toFixed(1),
	});
}

const queue = new MergingQueue<string>({
	clock: systemClock,
	backoff: { baseMs: 5, maxMs: 1_000_000 },
	onReady: () => {},
});
const items = new Map<string, string>();
const order: string[] = [];

const before = await heapUsed();
measure(
	"add a new key",
	() => {
		for (const key of keys) {
			queue.add(key, key, "live");
		}
	},
	() => {
		for (const key of keys) {
			items.set(key, key);
			order.push(key);
		}
	},
);
const bytesPerKey = ((await heapUsed()) - before) / count;

measure(
	"add a key that waits",
	() => {
		for (const key of keys) {
			queue.add(key, key, "live");
		}
	},
	() => {
		for (const key of keys) {
			if (items.has(key)) {
				items.set(key, key);
			}
		}
	},
);

measure(
	"take and be done",
	() => {
		for (let entry = queue.take(); entry !== undefined; entry = queue.take()) {
			queue.done(entry);
		}
	},
	() => {
		for (const key of order) {
			items.delete(key);
		}
		order.length = 0;
	},
);

const timers: NodeJS.Timeout[] = [];
measure(
	"add for later",
	() => {
		for (const [at, key] of keys.entries()) {
			queue.add(key, key, "live", 60_000 + ((at * 7919) % count));
		}
	},
	() => {
		for (const [at, key] of keys.entries()) {
			timers.push(setTimeout(() => order.push(key), 60_000 + ((at * 7919) % count)));
		}
	},
);

measure(
	"bring forward to now",
	() => {
		for (const key of keys) {
			queue.add(key, key, "live");
		}
	},
	() => {
		for (const [at, timer] of timers.entries()) {
			clearTimeout(timer);
			order.push(keys[at] ?? "");
		}
	},
);

measure(
	"take and fail",
	() => {
		for (let entry = queue.take(); entry !== undefined; entry = queue.take()) {
			queue.fail(entry);
		}
	},
	() => {
		for (const [at, key] of order.entries()) {
			timers[at] = setTimeout(() => order.push(key), 5_000);
		}
	},
);
queue.close();
for (const timer of timers) {
	clearTimeout(timer);
}

printTable(`Keyed queue, ${count.toLocaleString("en-US")} keys`, rows);
console.log(
	`\nHeap per ready key, with its plain twin: ${Math.round(bytesPerKey)} bytes (keys not counted)`,
);
