import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { replay, seconds, seed } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { checkBothSides } from "./both-sides.fixture.ts";
import { fuzzClient } from "./client-fuzz.fixture.ts";
import { checkFlowControl } from "./flow-model.fixture.ts";
import { fuzz } from "./fuzz.fixture.ts";
import { startWatchdog } from "./hang-watchdog.fixture.ts";
import { checkHpack } from "./hpack-model.fixture.ts";

/** Seeds between two measurements of the memory. */
const stretch = 2_000;

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

async function run(check: (seed: number) => Promise<void>, each: number): Promise<number> {
	const startMs = performance.now();
	try {
		await check(each);
	} catch (cause) {
		throw new Error(`seed ${each} of ${check.name} fails: ${replay(each)}`, { cause });
	}
	return performance.now() - startMs;
}

const megabytes = (numbers: readonly number[]) =>
	numbers.map((bytes) => Math.round(bytes / 1e6)).join(" ");

it("random sessions find no fault for an hour, and leave no memory behind", async () => {
	const progress = new Int32Array(new SharedArrayBuffer(4));
	const watchdog = startWatchdog(progress);
	onTestFinished(async () => {
		await watchdog.terminate();
	});
	const endMs = performance.now() + seconds(180) * 1_000;
	const heaps: number[] = [];
	const residents: number[] = [];
	let sessions = 0;
	let longestMs = 0;
	while (performance.now() < endMs) {
		for (let count = 0; count < stretch && performance.now() < endMs; count++) {
			for (const check of [fuzz, fuzz, fuzzClient, checkHpack, checkBothSides, checkFlowControl]) {
				Atomics.store(progress, 0, seed + sessions);
				longestMs = Math.max(longestMs, await run(check, seed + sessions));
				sessions++;
			}
		}
		collect();
		const { heapUsed, rss } = process.memoryUsage();
		heaps.push(heapUsed);
		residents.push(rss);
	}
	console.log(
		`${sessions} sessions from seed ${seed}, the longest in ${Math.round(longestMs)} ms;`,
		`heap in MB: ${megabytes(heaps)}; resident in MB: ${megabytes(residents)}`,
	);
	// The first stretch compiles and fills caches.
	const [, second = 0] = heaps;
	const last = heaps.at(-1) ?? 0;
	expect(last).toBeLessThan(Math.max(1.5 * second, second + 20e6));
});
