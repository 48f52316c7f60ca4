// What a write costs with watches of other names, as they become more, and an event per watch that it concerns. With
// `--against=<checkout>`, the storage is that of another checkout.
import { GrowthTable, otherCheckout, unlessQuick } from "@plinth/bench";
import { artist, artists } from "./fixtures.ts";

const path = "packages/storage/src/index.ts";
const { createMemoryBackend }: typeof import("../src/index.ts") = await import(
	otherCheckout(path) ?? "../src/index.ts"
);

/** Nanoseconds of processor time per write. */
async function costOfWrites(watches: number, prefixOf: (watch: number) => string, writes: number) {
	const backend = createMemoryBackend();
	const end = new AbortController();
	for (let watch = 0; watch < watches; watch++) {
		void follow(backend.watchList(artists("*", prefixOf(watch)), { signal: end.signal }));
	}
	await turns(10);
	const start = process.cpuUsage();
	for (let write = 0; write < writes; write++) {
		const resource = artist(write);
		await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
		await turns(1);
	}
	await turns(Math.ceil(watches / 32) + 1);
	const { user, system } = process.cpuUsage(start);
	end.abort();
	await backend.close();
	return ((user + system) * 1_000) / writes;
}

async function follow(events: AsyncIterable<unknown>): Promise<void> {
	try {
		for await (const _ of events) {
		}
	} catch {
		// It is over.
	}
}

async function turns(count: number): Promise<void> {
	for (let turn = 0; turn < count; turn++) {
		await new Promise((resolve) => setImmediate(resolve));
	}
}

const unconcerned = new GrowthTable("A write with N watches of other names", "ns per write");
await unconcerned.measure("other names", unlessQuick(50, 2), (watches) =>
	costOfWrites(watches, (watch) => `other-${watch}`, unlessQuick(5_000, 50)),
);
unconcerned.print();

const concerned = new GrowthTable("An event for N watches", "ns per watch");
await concerned.measure("all names", unlessQuick(50, 2), async (watches) => {
	const writes = unlessQuick(Math.max(100, 100_000 / watches), 10);
	return (await costOfWrites(watches, () => "", writes)) / watches;
});
concerned.print();
