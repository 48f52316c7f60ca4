import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { replay, seconds, seed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { checkFlowControl } from "./flow-model.fixture.ts";
import { fuzz } from "./fuzz.fixture.ts";
import { checkHpack } from "./hpack-model.fixture.ts";

/** Seeds between two measurements of the heap. */
const stretch = 2_000;

/** A session takes milliseconds: one that has not ended after a minute never will. */
const hangMs = 60_000;

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

async function run(check: (seed: number) => Promise<void>, each: number): Promise<void> {
	const hung = Promise.withResolvers<never>();
	const timer = setTimeout(() => hung.reject(new Error("it hangs")), hangMs);
	try {
		await Promise.race([check(each), hung.promise]);
	} catch (cause) {
		throw new Error(`seed ${each} of ${check.name} fails: ${replay(each)}`, { cause });
	} finally {
		clearTimeout(timer);
	}
}

it("random sessions find no fault for an hour, and leave no memory behind", async () => {
	const endMs = performance.now() + seconds(180) * 1_000;
	const heaps: number[] = [];
	let sessions = 0;
	while (performance.now() < endMs) {
		for (let count = 0; count < stretch && performance.now() < endMs; count++) {
			for (const check of [fuzz, fuzz, fuzz, checkHpack, checkFlowControl]) {
				await run(check, seed + sessions);
				sessions++;
			}
		}
		collect();
		heaps.push(process.memoryUsage().heapUsed);
	}
	console.log(
		`${sessions} sessions from seed ${seed}; the heap in MB:`,
		heaps.map((bytes) => Math.round(bytes / 1e6)).join(" "),
	);
	// The first stretch compiles and fills caches.
	const [, second = 0] = heaps;
	const last = heaps.at(-1) ?? 0;
	expect(last).toBeLessThan(Math.max(1.5 * second, second + 20e6));
});
