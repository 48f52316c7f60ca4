import { format, quantile } from "./statistics.ts";

/** Runs something that does `count` operations, and returns nanoseconds per operation. */
export async function nanosecondsPer(count: number, run: () => unknown): Promise<number> {
	const startMs = performance.now();
	await run();
	return ((performance.now() - startMs) * 1e6) / count;
}

/**
 * As `nanosecondsPer`, in time that the process has computed, in all of its threads: what others do on the machine
 * does not count. For functions that take tens of milliseconds: some systems count in steps of several.
 */
export function computedNanosecondsPer(count: number, run: () => unknown): number {
	const start = process.cpuUsage();
	run();
	const { user, system } = process.cpuUsage(start);
	return ((user + system) * 1e3) / count;
}

/** What some callers have done. */
export interface Load {
	/** In milliseconds, one a call. */
	readonly latenciesMs: readonly number[];
	readonly tookMs: number;
	readonly perSecond: number;
}

/** Lets callers call as fast as they can for some time, each one call after the other. */
export async function runCallers(
	callers: number,
	seconds: number,
	call: (caller: number, step: number) => Promise<unknown>,
): Promise<Load> {
	const latenciesMs: number[] = [];
	const startMs = performance.now();
	const endMs = startMs + seconds * 1000;
	await Promise.all(
		Array.from({ length: callers }, async (_, caller) => {
			for (let step = 0; performance.now() < endMs; step++) {
				const beginMs = performance.now();
				await call(caller, step);
				latenciesMs.push(performance.now() - beginMs);
			}
		}),
	);
	const tookMs = performance.now() - startMs;
	return { latenciesMs, tookMs, perSecond: (latenciesMs.length * 1000) / tookMs };
}

/** Cells of a table: how latencies are distributed, in milliseconds. */
export function latencyCells(latenciesMs: readonly number[]): Record<string, string> {
	const at = (share: number) => format(quantile(latenciesMs, share));
	return { "p50 ms": at(0.5), "p99 ms": at(0.99), "max ms": at(1) };
}

/** The heap in use after garbage collections, in bytes. */
export async function heapUsed(): Promise<number> {
	if (globalThis.gc === undefined) {
		throw new Error("the heap can't be measured without --expose-gc: run `pnpm bench`");
	}
	for (let round = 0; round < 3; round++) {
		await new Promise((resolve) => setImmediate(resolve));
		globalThis.gc();
	}
	return process.memoryUsage().heapUsed;
}
