/** Which requests with a region an agent with a cache serves itself. */
import { Code, ConnectError } from "@connectrpc/connect";
import { idOf, typeOf } from "@plinth/resource";
import { freePort } from "@plinth/test-support/ports";
import { describe, expect, it } from "vitest";
import { Artist, artist } from "../../../testdata/music.ts";
import { credentialFile } from "../../deployment/started-deployment.fixture.ts";
import { storageWithCopies } from "../../stored-copies.fixture.ts";
import {
	type CachedClient,
	cacheIs,
	clientOf,
	startCachedAgent,
	startCachedServer,
} from "./cached-agent.fixture.ts";

/** A server with an artist and copies of two, in the region r1 or in none, and an agent. */
async function start(hasRegion: boolean) {
	const internalListen = { host: "127.0.0.1", port: await freePort() };
	const { server, port } = await startCachedServer({
		storage: await storageWithCopies({ us: ["anna", "bert"] }),
		...(hasRegion && {
			deployment: {
				...{ service: "meta", region: "r1", metaAddresses: [], internalListen },
				address: `http://127.0.0.1:${internalListen.port}`,
				credentialFile: credentialFile(),
			},
		}),
	});
	await server.client.write({ resource: artist("anna") });
	const agent = await startCachedAgent([port]);
	await cacheIs(agent, "used");
	return { server, agent, client: clientOf(agent, "reader") };
}

/** The artists of a list, and whether it came from a cache. */
async function listed({ resources, wasCached }: CachedClient, region: string) {
	const response = await resources.list({ type: typeOf(Artist.type), tenancy: {}, region });
	const names = response.resources.map(({ id }) => `${id?.region ?? "here"} ${id?.name}`);
	return [names, wasCached()];
}

/** The region of an artist that is read, and whether it came from a cache. */
async function read({ resources, wasCached }: CachedClient, name: string, region: string) {
	try {
		const { resource } = await resources.read({ id: { ...idOf(Artist, name), region } });
		return [resource?.id?.region ?? "here", wasCached()];
	} catch (error) {
		return [Code[ConnectError.from(error).code], wasCached()];
	}
}

/** The first resources of a watch, and whether it came from a cache. */
async function watched({ resources, wasCached }: CachedClient, region: string) {
	const names: string[] = [];
	const end = new AbortController();
	const request = { type: typeOf(Artist.type), tenancy: {}, region };
	for await (const { event } of resources.watchList(request, { signal: end.signal })) {
		if (event.case !== "upsert") {
			break;
		}
		const id = event.value.resource?.id;
		names.push(`${id?.region ?? "here"} ${id?.name}`);
	}
	end.abort();
	return [names, wasCached()];
}

describe("an agent with a cache", () => {
	it("serves requests for a region as the servers of a region do", async () => {
		const { client, server } = await start(true);
		const copies = ["us anna", "us bert"];
		expect(await listed(client, "")).toEqual([["here anna"], true]);
		expect(await listed(client, "r1")).toEqual([["here anna"], true]);
		expect(await listed(client, "us")).toEqual([copies, true]);
		expect(await listed(client, "asia")).toEqual([[], true]);
		expect(await listed(client, "*")).toEqual([["here anna", ...copies], true]);
		expect(await read(client, "anna", "r1")).toEqual(["here", true]);
		expect(await read(client, "anna", "us")).toEqual(["us", true]);
		expect(await watched(client, "r1")).toEqual([["here anna"], true]);
		expect(await watched(client, "us")).toEqual([copies, true]);
		const { resource } = await client.resources.read({
			id: { ...idOf(Artist, "bert"), region: "us" },
		});
		const direct = await server.client.read({ id: { ...idOf(Artist, "bert"), region: "us" } });
		expect(resource).toEqual(direct.resource);
	});

	it("leaves to the servers what it can't find, and malformed regions", async () => {
		const { client } = await start(true);
		expect(await read(client, "bert", "r1")).toEqual(["NotFound", false]);
		expect(await read(client, "bert", "asia")).toEqual(["NotFound", false]);
		expect(await read(client, "bert", "US west")).toEqual(["InvalidArgument", false]);
	});

	it("serves requests for a region of servers that have none", async () => {
		const { client } = await start(false);
		expect(await listed(client, "r1")).toEqual([[], true]);
		expect(await listed(client, "us")).toEqual([["us anna", "us bert"], true]);
		expect(await read(client, "anna", "us")).toEqual(["us", true]);
	});
});
