/**
 * What lists with a name prefix over all namespaces, and pages of what a resource owns, cost as there are more
 * resources: in processor time, for a list that finds a hundred resources and for a page of a hundred.
 */

import { createClient } from "@connectrpc/connect";
import { format, numberOption, printTable, type Row } from "@plinth/bench";
import { createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";
import { idOf, Namespace, newUlid, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type Mutation } from "@plinth/storage";
import { Album, Artist, album, artist } from "../src/demo.fixture.ts";
import { createResourceService, insecureAllowAll } from "../src/index.ts";

const namespaces = 100;
const found = 100;

/** A service with so many albums in a hundred namespaces, all of one owner. One in each has another name. */
async function filled(albums: number) {
	const backend = createMemoryBackend();
	const owner = { ...idOf(Artist, "owner"), uid: newUlid(systemRuntime) };
	const all = [{ ...artist("owner"), id: owner }];
	for (let number = 0; number < albums; number += 1) {
		const at = Math.floor(number / namespaces);
		const name = at === 0 ? "rare" : `album-${at}`;
		const one = album(name, { owner, tenancy: { namespace: `n${number % namespaces}` } });
		all.push({ ...one, id: { ...(one.id ?? owner), uid: newUlid(systemRuntime) } });
	}
	for (let at = 0; at < all.length; at += 50) {
		const mutations = all
			.slice(at, at + 50)
			.map((resource): Mutation => ({ op: "put", resource, expectedVersion: "" }));
		await backend.commit(mutations);
	}
	const service = createResourceService({
		backend,
		registry: new TypeRegistry([Partition, Namespace, Tombstone, Artist, Album]),
		authorizer: insecureAllowAll,
	});
	const client = createClient(
		ResourceService,
		createInProcessTransport((router) => router.service(ResourceService, service)),
	);
	return { client, owner, [Symbol.asyncDispose]: () => backend.close() };
}

/** Processor time of a call, in microseconds. */
async function costOf(call: () => Promise<{ readonly resources: readonly unknown[] }>) {
	const rounds = 200;
	const check = async () => {
		const { resources } = await call();
		if (resources.length !== found) {
			throw new Error(`${resources.length} resources instead of ${found}`);
		}
	};
	await check();
	const before = process.cpuUsage();
	for (let round = 0; round < rounds; round += 1) {
		await check();
	}
	const { user, system } = process.cpuUsage(before);
	return (user + system) / rounds;
}

/** The cost of a list and of a page, in microseconds. */
async function measure(albums: number): Promise<{ list: number; page: number }> {
	await using service = await filled(albums);
	const { client, owner } = service;
	const everywhere = { partition: "*", namespace: "*" };
	const list = await costOf(() =>
		client.list({ type: Album.type, tenancy: everywhere, namePrefix: "rare" }),
	);
	// In the middle of what is owned.
	const { group, kind } = Album.type;
	const position = JSON.stringify([group, kind, "default", "n50", ""]);
	const pageToken = Buffer.from(position).toString("base64url");
	const page = await costOf(() => client.listByOwner({ owner, pageSize: found, pageToken }));
	return { list, page };
}

const smallest = numberOption("albums", 10_000, 1_000);
const rows: Row[] = [];
// Compiles what the others use.
await measure(smallest);
let first: Awaited<ReturnType<typeof measure>> | undefined;
for (const albums of [smallest, 10 * smallest, 100 * smallest]) {
	const costs = await measure(albums);
	first ??= costs;
	rows.push({
		albums: albums.toLocaleString("en-US"),
		"µs per list": format(costs.list),
		"list ÷ the smallest": format(costs.list / first.list),
		"µs per page of an owner": format(costs.page),
		"page ÷ the smallest": format(costs.page / first.page),
	});
}
printTable(`Lists with a prefix over ${namespaces} namespaces, and pages of an owner`, rows);
