/**
 * A cascade of many resources over two regions, and its effect on other clients:
 * `pnpm bench cascade --resources=100000`. Prints the latency of writes of another client
 * before and during the cascade, the duration, and the heap size before and after.
 */
import { create } from "@bufbuild/protobuf";
import { heapUsed, latencyCells, numberOption, unlessQuick } from "@plinth/bench";
import { idOf, referenceTo, resourceOf } from "@plinth/resource";
import { sleep, systemClock } from "@plinth/runtime";
import { Thing, ThingSchema } from "../testdata/types.ts";
import { type BenchServer, twoRegions } from "./servers.ts";

const resources = numberOption("resources", 100_000, 500);
const concurrency = 32;
/** The number of resources that the other client writes, which stay. */
const others = unlessQuick(1_000, 50);

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
			return latencies;
		},
	};
}

async function heapMiB(): Promise<number> {
	return (await heapUsed()) / 2 ** 20;
}

// Plinth's timers do not keep a process alive.
const alive = setInterval(() => {}, 1_000);
const { first, second } = await twoRegions();
// The first round fills bounded structures (event logs, pools). The second one shows whether anything leaks.
for (const round of [1, 2]) {
	const heapBefore = await heapMiB();
	await first.client.write({ resource: thing("root") });
	await writeAll(first, resources / 2, "r1");
	await writeAll(second, resources / 2, "r1");
	const quiet = otherTraffic(first);
	await sleep(systemClock, unlessQuick(5_000, 200));
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
	console.table({ before: latencyCells(before), "during the cascade": latencyCells(during) });
	await first.bury();
	await second.bury();
	const heap = await heapMiB();
	console.log(
		`${resources} resources gone in ${seconds.toFixed(1)} s; heap ${heapBefore.toFixed(1)} MiB before, ${heap.toFixed(1)} MiB after`,
	);
}
await first[Symbol.asyncDispose]();
await second[Symbol.asyncDispose]();
clearInterval(alive);
