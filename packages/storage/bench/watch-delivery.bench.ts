// Delivery of events to many watches: cursors in one log, against a queue of its own for each watch.
import { ComparisonTable, nanosecondsPer, unlessQuick } from "@plinth/bench";
import { createMemoryBackend } from "../src/index.ts";
import { artist, artists } from "./fixtures.ts";

const events = unlessQuick(2000, 50);

async function cursors(watches: number): Promise<number> {
	const backend = createMemoryBackend();
	const abort = new AbortController();
	let delivered = 0;
	const consumers = Array.from({ length: watches }, async () => {
		let own = 0;
		for await (const event of backend.watchList(artists(), { signal: abort.signal })) {
			own += Number(event.kind === "upsert");
			if (own === events) {
				break;
			}
		}
		delivered += own;
	});
	await new Promise((resolve) => setImmediate(resolve));
	const figure = await nanosecondsPer(events * watches, async () => {
		for (let index = 0; index < events; index++) {
			await backend.commit([{ op: "put", resource: artist(index), expectedVersion: "" }]);
			if (index % 16 === 15) {
				await new Promise((resolve) => setImmediate(resolve));
			}
		}
		await Promise.all(consumers);
	});
	if (delivered !== events * watches) {
		throw new Error(`${delivered} events were delivered`);
	}
	await backend.close();
	return figure;
}

interface Queue {
	readonly events: unknown[];
	wake: (() => void) | undefined;
}

async function queues(watches: number): Promise<number> {
	const all: Queue[] = Array.from({ length: watches }, () => ({ events: [], wake: undefined }));
	const consumers = all.map(async (queue) => {
		for (let own = 0; own < events; own++) {
			if (queue.events.length === 0) {
				await new Promise<void>((resolve) => {
					queue.wake = resolve;
				});
			}
			queue.events.shift();
			await undefined;
		}
	});
	const backend = createMemoryBackend();
	const figure = await nanosecondsPer(events * watches, async () => {
		for (let index = 0; index < events; index++) {
			const resource = artist(index);
			const { version } = await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
			for (const queue of all) {
				queue.events.push({ kind: "upsert", resource, version });
				queue.wake?.();
				queue.wake = undefined;
			}
			if (index % 16 === 15) {
				await new Promise((resolve) => setImmediate(resolve));
			}
		}
		await Promise.all(consumers);
	});
	return figure;
}

const table = new ComparisonTable("Delivery of an event to one of many watches", "ns");
for (const watches of unlessQuick([1, 10, 100, 1000], [1, 10])) {
	await table.measure(
		`${watches} watches`,
		{ cursors: () => cursors(watches), queues: () => queues(watches) },
		{ rounds: unlessQuick(3, 1), warmUpRounds: 1 },
	);
}
table.print();
