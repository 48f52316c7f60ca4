// How long the event loop is held up at a million resources, with a steady rate of commits, watches and
// paged lists: during the load, and after it. Pauses of the garbage collector are told apart, and so is
// what the thread has computed in one iteration: what is over that, it has waited for a processor.
// `--resources=1000000 --commits-per-second=3000 --seconds=20`
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { constants, monitorEventLoopDelay, PerformanceObserver } from "node:perf_hooks";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { numberOption } from "@plinth/bench";
import type { StorageBackend } from "@plinth/storage";
import { createSqliteBackend } from "../src/index.ts";
import { fill, nthArtist } from "./fill.ts";

const size = numberOption("resources", 1_000_000, 2_000);
const commitsPerSecond = numberOption("commits-per-second", 3000, 300);
const seconds = numberOption("seconds", 20, 1);
const watches = 100;
const pageSize = 500;

const query = {
	type: { group: "demo", groupVersion: "v2", kind: "Artist" },
	tenancy: { partition: "default", namespace: "*" },
	namePrefix: "",
};

/** The longest pauses of the garbage collector, by kind. */
const pauses = new Map<string, { count: number; maxMs: number }>();
const kinds = new Map(
	Object.entries(constants).flatMap(([name, value]) =>
		name.startsWith("NODE_PERFORMANCE_GC_") && !name.includes("FLAGS")
			? [[value, name.slice("NODE_PERFORMANCE_GC_".length).toLowerCase()] as const]
			: [],
	),
);
new PerformanceObserver((list) => {
	for (const entry of list.getEntries()) {
		const { detail } = entry as { detail?: { kind?: number } };
		const kind = kinds.get(detail?.kind ?? -1) ?? "other";
		const { count, maxMs } = pauses.get(kind) ?? { count: 0, maxMs: 0 };
		pauses.set(kind, { count: count + 1, maxMs: Math.max(maxMs, entry.duration) });
	}
}).observe({ entryTypes: ["gc"] });

/** Milliseconds that this thread has computed between two ticks of a timer. */
let computedMs: number[] = [];
let lastMicroseconds = 0;
setInterval(() => {
	const { user, system } = process.threadCpuUsage();
	computedMs.push((user + system - lastMicroseconds) / 1000);
	lastMicroseconds = user + system;
}, 1);

type Delay = ReturnType<typeof monitorEventLoopDelay>;

function report(title: string, delay: Delay): void {
	const ms = (ns: number) => (ns / 1e6).toFixed(1);
	console.log(title);
	const row = (of: Delay) => ({
		...Object.fromEntries(
			[50, 90, 99, 99.9].map((percent) => [`p${percent} ms`, ms(of.percentile(percent))]),
		),
		"max ms": ms(of.max),
	});
	computedMs.sort((a, b) => a - b);
	const computed = (percent: number) =>
		(computedMs[Math.ceil(((computedMs.length - 1) * percent) / 100)] ?? 0).toFixed(1);
	console.table({
		"event loop": row(delay),
		"of that computed": {
			...Object.fromEntries(
				[50, 90, 99, 99.9].map((percent) => [`p${percent} ms`, computed(percent)]),
			),
			"max ms": computed(100),
		},
	});
	computedMs = [];
	console.table(
		Object.fromEntries(
			[...pauses].map(([kind, { count, maxMs }]) => [
				`garbage collection, ${kind}`,
				{ count, "max ms": maxMs.toFixed(1) },
			]),
		),
	);
	pauses.clear();
}

async function watch(backend: StorageBackend, namespace: string, signal: AbortSignal) {
	const afterVersion = await backend.catchUp(signal);
	const tenancy = { partition: "default", namespace };
	let events = 0;
	try {
		for await (const _event of backend.watchList({ ...query, tenancy }, { afterVersion, signal })) {
			events += 1;
		}
	} catch (error) {
		if (!signal.aborted) {
			throw error;
		}
	}
	return events;
}

/** Reads all of the storage again and again, a page at a time. */
async function readPages(backend: StorageBackend, signal: AbortSignal): Promise<number> {
	let read = 0;
	while (!signal.aborted) {
		const snapshot = await backend.snapshot(query);
		for (const _resource of snapshot.resources()) {
			read += 1;
			if (read % pageSize === 0) {
				await sleep(5);
				if (signal.aborted) {
					break;
				}
			}
		}
	}
	return read;
}

async function commitSteadily(backend: StorageBackend, endMs: number): Promise<number> {
	const versions = new Map<number, string>();
	const startMs = performance.now();
	const underWay = new Set<Promise<void>>();
	let made = 0;
	while (performance.now() < endMs) {
		const due = ((performance.now() - startMs) / 1000) * commitsPerSecond;
		for (; made < due; made++) {
			// Each writes another resource, far from the one before.
			const index = (made * 7919) % size;
			const resource = nthArtist(index);
			const expectedVersion = versions.get(index) ?? String(index + 1);
			const commit = backend
				.commit([{ op: "put", resource, expectedVersion }])
				.then(({ version }) => {
					versions.set(index, version);
					underWay.delete(commit);
				});
			underWay.add(commit);
		}
		await turn();
		await sleep(1);
	}
	await Promise.all(underWay);
	return made;
}

const idleLoop = `
	const { monitorEventLoopDelay } = require("node:perf_hooks");
	const { parentPort, workerData } = require("node:worker_threads");
	const delay = monitorEventLoopDelay({ resolution: 1 });
	delay.enable();
	setTimeout(() => {
		delay.disable();
		const ms = (ns) => (ns / 1e6).toFixed(1);
		parentPort.postMessage({ "p99 ms": ms(delay.percentile(99)), "max ms": ms(delay.max) });
	}, workerData);
`;

const directory = await mkdtemp(join(tmpdir(), "plinth-bench-"));
const path = join(directory, "storage.db");
fill(path, size);

// What was before does not count.
await sleep(5);
computedMs = [];
pauses.clear();
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const startMs = performance.now();
const backend = await createSqliteBackend({ path });
await sleep(0);
delay.disable();
report(`load of ${size} resources in ${Math.round(performance.now() - startMs)} ms`, delay);

// What the machine does to an event loop that has nothing to do: all of the above is measured with it.
const idle = new Worker(idleLoop, { eval: true, workerData: seconds * 1000 });
const idleResult = once(idle, "message");
await once(idle, "online");
// Ready: from here on.
delay.reset();
delay.enable();
computedMs = [];
pauses.clear();
const stop = new AbortController();
const events = Array.from({ length: watches }, (_, index) =>
	watch(backend, index === 0 ? "*" : `team-${index}`, stop.signal),
);
const pages = [readPages(backend, stop.signal), readPages(backend, stop.signal)];
const beginMs = performance.now();
const made = await commitSteadily(backend, beginMs + seconds * 1000);
const rate = Math.round((made * 1000) / (performance.now() - beginMs));
delay.disable();
stop.abort();
const seen = (await Promise.all(events)).reduce((sum, count) => sum + count, 0);
const read = (await Promise.all(pages)).reduce((sum, count) => sum + count, 0);
report(
	`${rate} commits a second, ${watches} watches (${seen} events), two paged lists (${read} resources), ${seconds} s`,
	delay,
);
console.log("an idle event loop in the same process at the same time");
console.table((await idleResult)[0]);
await backend.close();
await rm(directory, { recursive: true });
process.exit(0);
