// Delivery of events to many watches: cursors in one log, against a queue of its own for each watch.
import { createMemoryBackend } from "../src/index.ts";
import { artist, artists, timed } from "./fixtures.ts";

const events = 2000;

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
	const tookMs = await timed(async () => {
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
	return tookMs;
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
	const tookMs = await timed(async () => {
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
	return tookMs;
}

const rows = [];
await cursors(10);
await queues(10);
for (const watches of [1, 10, 100, 1000]) {
	const withCursors = await cursors(watches);
	const withQueues = await queues(watches);
	rows.push({
		watches,
		"cursors: ns per event and watch": Math.round((withCursors * 1e6) / (events * watches)),
		"queues: ns per event and watch": Math.round((withQueues * 1e6) / (events * watches)),
		"cursors: deliveries a second": Math.round((events * watches * 1000) / withCursors),
	});
}
console.table(rows);
