/**
 * A cascade of many resources over two regions, and its effect on other clients:
 * `node --expose-gc bench/cascade.bench.ts [resources]`. Prints the latency of writes of another client
 * before and during the cascade, the duration, and the heap size before and after.
 */
import { create } from "@bufbuild/protobuf";
import { idOf, referenceTo, resourceOf } from "@plinth/resource";
import { sleep, systemClock } from "@plinth/runtime";
import { Thing, ThingSchema } from "../testdata/types.ts";
import { type BenchServer, twoRegions } from "./servers.ts";

const resources = Number(process.argv[2] ?? 100_000);
const concurrency = 32;
/** The number of resources that the other client writes, which stay. */
const others = 1_000;

const thing = (name: string, region?: string) => {
	const belongsTo = region === undefined ? undefined : { ...referenceTo({ name: "root" }), region };
	const data = create(ThingSchema, { ...(belongsTo && { belongsTo }) });
	return resourceOf(Thing, { id: idOf(Thing, name), data });
};

async function writeAll(server: BenchServer, count: number, region?: string): Promise<void> {
	let next = 0;
	const writer = async () => {
		for (let i = next++; i < count; i = next++) {
			await server.client.write({ resource: thing(`part-${i}`, region) });
		}
	};
	await Promise.all(Array.from({ length: concurrency }, writer));
}

/** Writes of another client until stopped. `stop` returns their latencies in milliseconds. */
function otherTraffic(server: BenchServer): { stop(): Promise<readonly number[]> } {
	let stopped = false;
	const latencies: number[] = [];
	const running = (async () => {
		for (let i = 0; !stopped; i++) {
			const start = performance.now();
			await server.client.write({ resource: thing(`other-${i % others}`) });
			latencies.push(performance.now() - start);
			await sleep(systemClock, 2);
		}
	})();
	return {
		stop: async () => {
			stopped = true;
			await running;
			return latencies.sort((a, b) => a - b);
		},
	};
}

const at = (sorted: readonly number[], share: number) =>
	(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(2);

function heapMiB(): number {
	globalThis.gc?.();
	globalThis.gc?.();
	return process.memoryUsage().heapUsed / 2 ** 20;
}

// Plinth's timers do not keep a process alive.
const alive = setInterval(() => {}, 1_000);
const { first, second } = await twoRegions();
// The first round fills bounded structures (event logs, pools). The second one shows whether anything leaks.
for (const round of [1, 2]) {
	const heapBefore = heapMiB();
	await first.client.write({ resource: thing("root") });
	await writeAll(first, resources / 2, "r1");
	await writeAll(second, resources / 2, "r1");
	const quiet = otherTraffic(first);
	await sleep(systemClock, 5_000);
	const before = await quiet.stop();

	const concurrent = otherTraffic(first);
	const start = performance.now();
	await first.client.delete({ id: idOf(Thing, "root") });
	for (;;) {
		const counts = await Promise.all([first.count(Thing), second.count(Thing)]);
		const seconds = ((performance.now() - start) / 1000).toFixed(1);
		console.log(`round ${round}, ${seconds} s: stored in r1 ${counts[0]}, in r2 ${counts[1]}`);
		if (counts[0] + counts[1] <= others) {
			break;
		}
		await sleep(systemClock, resources > 20_000 ? 5_000 : 500);
	}
	const seconds = (performance.now() - start) / 1000;
	const during = await concurrent.stop();
	console.table([
		{ writes: "before", p50: at(before, 0.5), p99: at(before, 0.99), max: at(before, 1) },
		{
			writes: "during the cascade",
			p50: at(during, 0.5),
			p99: at(during, 0.99),
			max: at(during, 1),
		},
	]);
	await first.bury();
	await second.bury();
	const heap = heapMiB();
	console.log(
		`${resources} resources gone in ${seconds.toFixed(1)} s; heap ${heapBefore.toFixed(1)} MiB before, ${heap.toFixed(1)} MiB after`,
	);
}
await first[Symbol.asyncDispose]();
await second[Symbol.asyncDispose]();
clearInterval(alive);
