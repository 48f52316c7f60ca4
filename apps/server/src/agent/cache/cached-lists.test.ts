/** How many lists a cache serves at the same time: its callers share the memory and the time of the agent. */
import { once } from "node:events";
import { type ClientHttp2Stream, connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { ListRequestSchema } from "@plinth/proto";
import { typeOf } from "@plinth/resource";
import { expect, it, onTestFinished, vi } from "vitest";
import { Artist, artist } from "../../../testdata/music.ts";
import { cacheVersionHeader } from "./agent-cache.ts";
import { cacheLimits } from "./cache-limits.ts";
import { cacheIs, clientOf, startCachedAgent, startCachedServer } from "./cached-agent.fixture.ts";

const artists = { type: typeOf(Artist.type), tenancy: {} };

const body = toBinary(ListRequestSchema, create(ListRequestSchema, artists));

/** A client that reads no data of its responses. */
function unreadLists({ address }: { readonly address: string }) {
	const session = connect(address, { settings: { initialWindowSize: 0 } });
	session.on("error", () => {});
	onTestFinished(() => session.destroy());
	return {
		/** Lists artists. Returns whether the response comes from a cache. */
		async list(): Promise<boolean> {
			const stream: ClientHttp2Stream = session.request({
				":method": "POST",
				":path": "/plinth.resource.v1.ResourceService/List",
				"content-type": "application/proto",
				authorization: "Bearer reader-token",
			});
			stream.on("error", () => {});
			stream.end(body);
			const [headers] = await once(stream, "response");
			expect(headers[":status"]).toBe(200);
			return headers[cacheVersionHeader] !== undefined;
		},
		leave: () => session.destroy(),
	};
}

it("a caller that reads no responses leaves the cache to others, and its further lists to the servers", async () => {
	const { server, port } = await startCachedServer();
	for (const name of ["anna", "bert"]) {
		await server.client.write({ resource: artist(name) });
	}
	const agent = await startCachedAgent([port]);
	await cacheIs(agent, "used");
	const { perSubject } = cacheLimits.lists;
	const first = await clientOf(agent, "reader").resources.list({ ...artists, pageSize: 1 });
	const unread = unreadLists(agent);
	for (let count = 1; count <= perSubject + 3; count += 1) {
		expect([count, await unread.list()]).toEqual([count, count <= perSubject]);
	}
	const other = clientOf(agent, "writer");
	await other.resources.list(artists);
	expect(other.wasCached()).toBe(true);
	const same = clientOf(agent, "reader");
	expect((await same.resources.list(artists)).resources).toHaveLength(2);
	expect(same.wasCached()).toBe(false);
	const { nextPageToken: pageToken } = first;
	const second = await same.resources.list({ ...artists, pageSize: 1, pageToken });
	expect(second.resources).toHaveLength(1);
	expect(same.wasCached()).toBe(true);
	unread.leave();
	await vi.waitFor(
		async () => {
			await same.resources.list(artists);
			expect(same.wasCached()).toBe(true);
		},
		{ timeout: 300_000 },
	);
});
