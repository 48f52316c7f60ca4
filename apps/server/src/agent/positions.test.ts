/** Clients of an agent read from several servers, and none sees an older state after a newer one. */
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
	createConnectTransport,
	createGrpcTransport,
	createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf, typeOf } from "@plinth/resource";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { Artist, artist, musicModule } from "../../testdata/music.ts";
import { enveloped, openSession, post } from "../raw-calls.fixture.ts";
import { startServer } from "../started-server.fixture.ts";
import { type RawHandler, startUpstream } from "./raw-upstream.fixture.ts";
import { readiness, startReadyAgent } from "./started-agent.fixture.ts";

const read = "/plinth.resource.v1.ResourceService/Read";
const write = "/plinth.resource.v1.ResourceService/Write";
const list = "/plinth.resource.v1.ResourceService/List";
const watch = "/plinth.resource.v1.ResourceService/WatchList";

/** A server that has reached a version, and refuses later ones as a real one does. */
function at(version: () => number): RawHandler {
	return (stream, headers) => {
		stream.resume();
		stream.on("end", () => {
			const isRefused = Number(headers["x-plinth-not-before"]) > version();
			stream.respond({
				":status": isRefused ? 400 : 200,
				"content-type": "application/json",
				"x-plinth-position": String(version()),
			});
			stream.end(isRefused ? '{"code":"out_of_range"}' : "{}");
		});
	};
}

async function call(address: string, path: string, headers: Readonly<Record<string, string>> = {}) {
	const { stream, ended } = post(openSession(address), path, "{}", { headers });
	let position: unknown;
	stream.once("response", (fields) => {
		position = fields["x-plinth-position"];
	});
	const { status } = await ended;
	return { status, position };
}

describe("the position of an agent", () => {
	it("is the newest that it has passed on, whichever server it calls and whichever client calls it", async () => {
		let version = 17;
		const servers = [
			await startUpstream(at(() => version)),
			await startUpstream(at(() => version)),
		];
		const agent = await startReadyAgent(servers.map(({ address }) => address));
		expect(await call(agent.address, read)).toEqual({ status: "200", position: undefined });
		version = 19;
		expect(await call(agent.address, write)).toEqual({ status: "200", position: undefined });
		expect(await call(agent.address, read, { "x-plinth-not-before": "18" })).toEqual({
			...{ status: "200", position: "19" },
		});
		await call(agent.address, "/plinth.type.v1.TypeService/ListTypes");
		const sent = servers.flatMap(({ calls }) =>
			calls.map((headers) => [String(headers[":path"]), headers["x-plinth-not-before"]]),
		);
		expect(sent.sort()).toEqual(
			[
				[read, "0"],
				[write, "17"],
				[read, "19"],
				["/plinth.type.v1.TypeService/ListTypes", undefined],
			].sort(),
		);
		expect(servers.every(({ calls }) => calls.length === 2)).toBe(true);
	});

	it("is given up if the storage was replaced by another one: the call is sent again, also a write", async () => {
		let version = 17;
		const server = await startUpstream(at(() => version));
		const agent = await startReadyAgent([server.address]);
		await call(agent.address, read);
		version = 3;
		expect(await call(agent.address, write)).toMatchObject({ status: "200" });
		expect(await call(agent.address, read)).toMatchObject({ status: "200" });
		// A client that has seen more must know.
		expect(await call(agent.address, read, { "x-plinth-not-before": "17" })).toEqual({
			...{ status: "400", position: "3" },
		});
		expect(server.calls.map((headers) => headers["x-plinth-not-before"])).toEqual([
			...["0", "17", "3", "3", "17"],
		]);
	});

	it("is given up by a write that is too large to be sent again: its client must repeat it", async () => {
		let version = 17;
		const server = await startUpstream(at(() => version));
		const agent = await startReadyAgent([server.address]);
		await call(agent.address, read);
		version = 3;
		const body = JSON.stringify({ text: "x".repeat(100_000) });
		const { stream, ended } = post(openSession(agent.address), write, body);
		stream.resume();
		expect(JSON.parse((await ended).body)).toEqual({
			code: "unavailable",
			message:
				"the call was not executed: the servers have another storage than before, or a backup of it: call again",
		});
		expect((await post(openSession(agent.address), write, body).ended).status).toBe("200");
	});

	it("is given up by a set of watches too", async () => {
		const before = await startServer({ modules: [musicModule()] });
		const agent = await startReadyAgent([before.address]);
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: agent.address }));
		for (const name of ["a", "b", "c"]) {
			await client.write({ resource: artist(name) });
		}
		const listen = { host: "127.0.0.1", port: Number(new URL(before.address).port) };
		await before.stop();
		await startServer({ modules: [musicModule()], listen });
		await readiness(agent.address, new RegExp(`${before.address}: ready`));
		const watches = [{ id: "w", request: { type: typeOf(Artist.type) } }];
		const end = new AbortController();
		for await (const { content } of client.watchSet({ watches }, { signal: end.signal })) {
			expect(content).toMatchObject({ case: "event", value: { event: { case: "endOfSnapshot" } } });
			break;
		}
		end.abort();
	});

	it("is that of an event which a watch has passed on", async () => {
		const event = { upsert: { resource: { id: { name: "a" }, version: "23" } } };
		const server = await startUpstream((stream, headers) => {
			if (headers[":path"] !== watch) {
				at(() => 23)(stream, headers);
				return;
			}
			stream.resume();
			stream.respond({ ":status": 200, "content-type": "application/connect+json" });
			stream.write(enveloped(JSON.stringify(event)));
		});
		const agent = await startReadyAgent([server.address]);
		const { stream } = post(openSession(agent.address), watch, enveloped("{}"), {
			contentType: "application/connect+json",
		});
		await new Promise((resolve) => stream.once("data", resolve));
		await call(agent.address, read);
		expect(server.calls[1]?.["x-plinth-not-before"]).toBe("23");
		stream.close();
	});
});

describe("the pages of a list", () => {
	it("come from the server that has returned the first one, and end with it", async () => {
		const pageOf = (key: string): RawHandler => {
			return (stream) => {
				stream.resume();
				stream.on("end", () => {
					stream.respond({
						...{ ":status": 200, "content-type": "application/json", "x-plinth-pages": key },
					});
					stream.end(JSON.stringify({ nextPageToken: `${key}.more` }));
				});
			};
		};
		const servers = [await startUpstream(pageOf("A")), await startUpstream(pageOf("B"))] as const;
		const agent = await startReadyAgent(servers.map(({ address }) => address));
		const page = async (request: object) =>
			(await post(openSession(agent.address), list, JSON.stringify(request)).ended).body;
		const first: string[] = [];
		for (let count = 0; count < 2; count += 1) {
			first.push(await page({}));
		}
		expect(first.sort()).toEqual(['{"nextPageToken":"A.more"}', '{"nextPageToken":"B.more"}']);
		for (let count = 0; count < 3; count += 1) {
			expect(await page({ pageToken: "A.more" })).toBe('{"nextPageToken":"A.more"}');
		}
		expect(servers.map(({ calls }) => calls.length)).toEqual([4, 1]);
		servers[0].close();
		await readiness(agent.address, new RegExp(`${servers[0].address}: not ready`));
		expect(JSON.parse(await page({ pageToken: "A.more" }))).toEqual({
			code: "out_of_range",
			message: `page_token is no longer valid, as ${servers[0].address} has the pages of this list, and is not ready: list again from the start`,
		});
		expect(await page({ pageToken: "B.more" })).toBe('{"nextPageToken":"B.more"}');
	});
});

const transports: readonly [string, (baseUrl: string) => Transport][] = [
	["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
	["gRPC-Web", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
	["Connect", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })],
	["GET", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", useHttpGet: true })],
];

describe.each(transports)(
	"an agent, called over %s, whose server has another storage",
	(_name, to) => {
		it("serves it from its own position on", async () => {
			const first = await startServer({ modules: [musicModule()] });
			const agent = await startReadyAgent([first.address]);
			const client = createClient(ResourceService, to(agent.address));
			for (let count = 0; count < 20; count += 1) {
				await client.write({ resource: artist("miles") });
			}
			const port = Number(new URL(first.address).port);
			await first.stop();
			await readiness(agent.address, /^not ready/);
			await startServer({ modules: [musicModule()], listen: { host: "127.0.0.1", port } });
			await readiness(agent.address, /^ready/);
			const failure = await client.read({ id: idOf(Artist, "miles") }).catch(ConnectError.from);
			expect(failure).toMatchObject({ code: Code.NotFound });
			await client.write({ resource: artist("miles") });
		});
	},
);

describeWith("etcd")("an agent in front of a cluster", () => {
	it("returns all pages of a list, over each protocol", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const storage = { kind: "etcd", endpoints: [etcd.url] } as const;
		const servers = [
			await startServer({ storage, modules: [musicModule()] }),
			await startServer({ storage, modules: [musicModule()] }),
		];
		const agent = await startReadyAgent(servers.map(({ address }) => address));
		const names = Array.from({ length: 9 }, (_, index) => `artist-${index}`);
		const writer = createClient(ResourceService, createGrpcTransport({ baseUrl: agent.address }));
		await Promise.all(names.map((name) => writer.write({ resource: artist(name) })));
		for (const [, to] of transports) {
			const client = createClient(ResourceService, to(agent.address));
			const found: (string | undefined)[] = [];
			let pageToken = "";
			do {
				const page = await client.list({ type: Artist.type, tenancy: {}, pageSize: 2, pageToken });
				found.push(...page.resources.map(({ id }) => id?.name));
				pageToken = page.nextPageToken;
			} while (pageToken !== "");
			expect(found).toEqual(names);
		}
	});

	it("lets a client read what it has just written, or seen in a watch, at each server", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const start = () =>
			startServer({
				storage: { kind: "etcd", endpoints: [etcd.url] },
				modules: [musicModule()],
			});
		const servers = [await start(), await start(), await start()];
		const agent = await startReadyAgent(servers.map(({ address }) => address));
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: agent.address }));
		const end = new AbortController();
		onTestFinished(() => end.abort());
		const events = client
			.watchList({ type: Artist.type, tenancy: {} }, { signal: end.signal })
			[Symbol.asyncIterator]();
		expect((await events.next()).value?.event.case).toBe("endOfSnapshot");
		for (let count = 0; count < 60; count += 1) {
			const { resource } = await client.write({ resource: artist("miles", `genre-${count}`) });
			const version = resource?.version ?? "";
			for (let reads = 0; reads < 2; reads += 1) {
				const found = await client.read({ id: idOf(Artist, "miles") });
				expect(found.resource?.version).toBe(version);
			}
			const { value } = await events.next();
			expect(value?.version).toBe(version);
		}
	});
});
