/** Requests in JSON that have a member twice: a server refuses them, and so it does through an agent, which reads some. */
import { describe, expect, it } from "vitest";
import { musicModule } from "../../testdata/music.ts";
import { enveloped, openSession, post } from "../raw-calls.fixture.ts";
import { startServer } from "../started-server.fixture.ts";
import { startReadyAgent } from "./started-agent.fixture.ts";

const service = "/plinth.resource.v1.ResourceService";
const type = '"type":{"group":"music","groupVersion":"v1","kind":"Artist"}';

const watches: readonly (readonly [string, string])[] = [
	["WatchList", `{${type},"bookmarks":true,"bookmarks":false}`],
	["WatchList", `{${type},"bookmarks":false,"\\u0062ookmarks":true}`],
	["WatchList", `{${type},"afterVersion":"1","after_version":""}`],
	["WatchList", `{${type},"namePrefix":"a","namePrefix":"b"}`],
	["WatchSet", `{"watches":[{"id":"a","request":{${type},"bookmarks":true,"bookmarks":true}}]}`],
	["WatchSet", `{"watches":[{"id":"a","id":"b","request":{${type}}}]}`],
	["WatchSet", `{"watches":[],"watches":[{"id":"a","request":{${type}}}]}`],
];

const id = `"id":{"name":"a",${type}}`;

const calls: readonly (readonly [string, string])[] = [
	["List", `{${type},"pageToken":"a.b","pageToken":""}`],
	["Write", `{"resource":{${id}},"createOnly":true,"createOnly":false}`],
	["Write", `{"resource":{${id},"version":"1","version":""}}`],
	["Delete", `{${id},"version":"","version":"1"}`],
];

const refused = /duplicate object key|set multiple times/;

describe("a request with a member twice", { timeout: 300_000 }, () => {
	it("is refused through an agent as by its server, over each protocol and version of HTTP", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const agent = await startReadyAgent([server.address]);
		/** What follows is the end of a call, which a server sends and an agent passes on. */
		const overHttp2 = (address: string, path: string, contentType: string, body: string | Buffer) =>
			post(openSession(address), `${service}/${path}`, body, { contentType }).ended;
		const overHttp1 = async (
			address: string,
			path: string,
			type: string,
			body: string | Buffer,
		) => {
			const headers = { "content-type": type };
			const response = await fetch(`${address}${service}/${path}`, {
				method: "POST",
				headers,
				body,
			});
			return { status: response.status, body: await response.text() };
		};
		for (const [method, request] of watches) {
			for (const protocol of ["connect", "grpc", "grpc-web"]) {
				const contentType = `application/${protocol}+json`;
				const end = (address: string) =>
					overHttp2(address, method, contentType, enveloped(request));
				const [direct, forwarded] = [await end(server.address), await end(agent.address)];
				expect(forwarded, `${method} ${contentType} ${request}`).toEqual(direct);
				if (protocol === "grpc") {
					expect(direct.status).toBe("grpc 3");
				} else {
					expect(decodeURIComponent(direct.body)).toMatch(refused);
				}
			}
			const end = (address: string) =>
				overHttp1(address, method, "application/connect+json", enveloped(request));
			expect(await end(agent.address)).toEqual(await end(server.address));
		}
		for (const [method, request] of calls) {
			for (const send of [overHttp1, overHttp2]) {
				const end = (address: string) => send(address, method, "application/json", request);
				const [direct, forwarded] = [await end(server.address), await end(agent.address)];
				expect(forwarded, `${method} ${request}`).toEqual(direct);
				expect(direct.body).toMatch(refused);
			}
		}
	});
});
