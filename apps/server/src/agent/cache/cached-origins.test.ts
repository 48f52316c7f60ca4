/** Requests of web pages, which servers tell from those of programs: a cache leaves them to the servers. */
import { create, toBinary } from "@bufbuild/protobuf";
import { ReadRequestSchema } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { expect, it } from "vitest";
import { Artist, artist } from "../../../testdata/music.ts";
import { rawHttp1 } from "../../security/raw-requests.fixture.ts";
import { cacheIs, startCachedAgent, startCachedServer } from "./cached-agent.fixture.ts";

const page = "https://console.example";

const body = Buffer.from(
	toBinary(ReadRequestSchema, create(ReadRequestSchema, { id: idOf(Artist, "anna") })),
).toString("latin1");

/** Reads an artist, with these lines in the head of the request. */
const read = ({ address }: { readonly address: string }, ...lines: readonly string[]) =>
	rawHttp1(
		address,
		[
			"POST /plinth.resource.v1.ResourceService/Read HTTP/1.1",
			"authorization: Bearer reader-token",
			"content-type: application/proto",
			...lines,
		],
		body,
	);

it.each([
	["an origin that is not allowed", "host: localhost", "origin: https://evil.example"],
	["the origin of a sandboxed page", "host: localhost", "origin: null"],
	["a page of another site, without an origin", "host: localhost", "sec-fetch-site: cross-site"],
	["a page whose name leads here", "host: evil.example:80", "origin: http://evil.example"],
	["a name that is not allowed", "host: evil.example"],
])("a request of %s is refused as by a server", async (_, ...lines) => {
	const { server, port } = await startCachedServer({ allowedHosts: ["plinth.example"] });
	await server.client.write({ resource: artist("anna") });
	const agent = await startCachedAgent([port]);
	await cacheIs(agent, "used");
	const cached = await read(agent, "host: plinth.example");
	expect(cached).toMatchObject({
		status: 200,
		headers: { "x-plinth-cache-version": expect.any(String) },
	});
	const { status, body: refusal } = await read(server, ...lines);
	expect(status).toBeGreaterThanOrEqual(400);
	expect(await read(agent, ...lines)).toMatchObject({ status, body: refusal });
});

it("a page of an origin that is allowed can read what it requests", async () => {
	const { server, port } = await startCachedServer({ cors: { allowedOrigins: [page] } });
	await server.client.write({ resource: artist("anna") });
	const agent = await startCachedAgent([port]);
	await cacheIs(agent, "used");
	expect(await read(agent, "host: localhost", `origin: ${page}`)).toMatchObject({
		status: 200,
		headers: { "access-control-allow-origin": page },
	});
});
