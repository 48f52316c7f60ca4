/*
 * What the resource service costs, next to an implementation that returns constants of the same
 * size: that is the cost of Connect alone. All times are CPU times of this process, in which
 * client and server run, so that those over a socket are of both sides.
 */
import { create } from "@bufbuild/protobuf";
import type { Client, ServiceImpl } from "@connectrpc/connect";
import {
	ComparisonTable,
	format,
	printTable,
	quantile,
	type Row,
	unlessQuick,
} from "@plinth/bench";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { NamespaceSchema, ResourceService } from "@plinth/proto";
import { idOf, Namespace, Partition, resourceOf, Tombstone, TypeRegistry } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { Album, Artist, album, artist, demoTypes } from "../src/demo.fixture.ts";
import { createResourceService, ensureDefaultTenancy, insecureAllowAll } from "../src/index.ts";
import { connections } from "./connections.ts";
import { computedMicroseconds, computedPerCall } from "./measure.ts";

const listed = unlessQuick(1_000, 100);

const backend = createMemoryBackend();
await ensureDefaultTenancy(backend, systemRuntime);
const service = createResourceService({
	backend,
	registry: new TypeRegistry([Partition, Namespace, Tombstone, ...demoTypes]),
	authorizer: insecureAllowAll,
});
const local = clientOf(service);
for (const namespace of ["calls", "created", "watched"]) {
	await local.write({
		resource: resourceOf(Namespace, {
			id: idOf(Namespace, namespace),
			data: create(NamespaceSchema),
		}),
	});
}
const tenancy = { namespace: "calls" };
const names = Array.from({ length: listed }, (_, index) => `r${index}`);
for (const name of names) {
	await local.write({ resource: artist(name, tenancy) });
}
const { resource: one } = await local.read({ id: idOf(Artist, "r0", tenancy) });
const all = await local.list({ type: Artist.type, tenancy });

/** Returns what the service would, without doing anything. */
const bare: Partial<ServiceImpl<typeof ResourceService>> = {
	read: () => ({ $typeName: "plinth.resource.v1.ReadResponse", ...(one && { resource: one }) }),
	write: () => ({ $typeName: "plinth.resource.v1.WriteResponse", ...(one && { resource: one }) }),
	list: () => all,
};

let turn = 0;
function nextName(): string {
	turn = (turn + 1) % names.length;
	return names[turn] ?? "";
}

let created = 0;
function newName(): string {
	created += 1;
	return `c${created}`;
}

const calls = {
	Read: (client: Client<typeof ResourceService>) =>
		client.read({ id: idOf(Artist, nextName(), tenancy) }),
	Write: (client: Client<typeof ResourceService>) =>
		client.write({ resource: artist(nextName(), tenancy) }),
	Create: (client: Client<typeof ResourceService>) =>
		client.write({ resource: artist(newName(), { namespace: "created" }) }),
	"List of 1,000": (client: Client<typeof ResourceService>) =>
		client.list({ type: Artist.type, tenancy }),
};

const table = new ComparisonTable("Calls, computing time of client and server", "µs");
for (const [name, open] of Object.entries(connections)) {
	const [ours, theirs] = [await open(service), await open(bare)];
	for (const [method, call] of Object.entries(calls)) {
		const concurrency = name === "in-process" ? 1 : 8;
		await table.measure(`${method}, ${name}`, {
			service: () => computedPerCall(() => call(ours.client), concurrency),
			bare: () => computedPerCall(() => call(theirs.client), concurrency),
		});
	}
	ours.close();
	theirs.close();
}
table.print();

/** The cheapest round: a collection of garbage from elsewhere only ever adds to it. */
const best = (figures: readonly number[]) => quantile(figures, 0);
const fanOut: Row[] = [];
const unwatched = best(await writesWith(0));
for (const watchers of unlessQuick([1, 10, 100, 1_000], [1, 10])) {
	const perEvent = best(await writesWith(watchers));
	fanOut.push({
		watchers,
		"µs per write and its events": format(perEvent),
		"µs per event and watcher": format((perEvent - unwatched) / watchers),
	});
}
printTable(
	`Watch fan-out, in-process; a write without watchers takes ${format(unwatched)} µs`,
	fanOut,
);
await backend.close();
process.exit(0);

/** Microseconds per write until all watchers have got its event, of several rounds. */
async function writesWith(watchers: number): Promise<readonly number[]> {
	const writes = unlessQuick(
		Math.max(100, Math.min(1_000, Math.floor(20_000 / Math.max(1, watchers)))),
		20,
	);
	const end = new AbortController();
	let outstanding = 0;
	let caughtUp = () => {};
	let ready = 0;
	const streams = Array.from({ length: watchers }, async () => {
		const request = { type: Album.type, tenancy: { namespace: "watched" } };
		for await (const { event } of local.watchList(request, { signal: end.signal })) {
			if (event.case === "endOfSnapshot") {
				ready += 1;
			} else if (ready >= watchers) {
				outstanding -= 1;
				if (outstanding === 0) {
					caughtUp();
				}
			}
		}
	});
	const ended = Promise.allSettled(streams);
	while (ready < watchers) {
		await new Promise((resolve) => setImmediate(resolve));
	}
	const results: number[] = [];
	for (let round = 0; round < 7; round += 1) {
		const start = computedMicroseconds();
		outstanding += watchers * writes;
		const done = new Promise<void>((resolve) => {
			caughtUp = resolve;
		});
		for (let count = 0; count < writes; count += 1) {
			await local.write({ resource: album("watched", { tenancy: { namespace: "watched" } }) });
		}
		await (watchers === 0 ? undefined : done);
		results.push((computedMicroseconds() - start) / writes);
	}
	end.abort();
	await ended;
	return results.slice(2);
}

function clientOf(implementation: ServiceImpl<typeof ResourceService>) {
	const transport = createInProcessTransport((router) =>
		router.service(ResourceService, implementation),
	);
	return createInProcessClient(ResourceService, transport);
}
