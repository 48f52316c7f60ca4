/** What becomes of a watch that is cut off at an exact place, with servers that behave as each test says. */
import { once } from "node:events";
import { constants, type ServerHttp2Stream } from "node:http2";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { describe, expect, it } from "vitest";
import { enveloped, metric, openSession, post, type RawCall } from "../raw-calls.fixture.ts";
import { type RawUpstream, startUpstream } from "./raw-upstream.fixture.ts";
import { readiness, startReadyAgent } from "./started-agent.fixture.ts";

const path = "/plinth.resource.v1.ResourceService/WatchList";
const setPath = "/plinth.resource.v1.ResourceService/WatchSet";

/** Each protocol with JSON, so that messages can be read here. */
const protocols = [
	["gRPC", "application/grpc+json"],
	["gRPC-Web", "application/grpc-web+json"],
	["Connect", "application/connect+json"],
] as const;

const [, , [, connect]] = protocols;

function upsert(name: string, of: string, version?: string): object {
	return { upsert: { resource: { id: { name }, version: of, data: { text: '"}]' } } }, version };
}

const endOfSnapshot = { endOfSnapshot: {}, version: "5" };

/** A stream of a watch at a server, after its request has come. */
class Served {
	readonly request: unknown;
	readonly #stream: ServerHttp2Stream;
	readonly #contentType: string;

	constructor(stream: ServerHttp2Stream, contentType: string, request: unknown) {
		this.#stream = stream;
		this.#contentType = contentType;
		this.request = request;
	}

	/** Sends the head. */
	begin(headers: Readonly<Record<string, string>> = {}): void {
		this.#stream.respond(
			{ ":status": 200, "content-type": this.#contentType, ...headers },
			{ waitForTrailers: true },
		);
	}

	send(...events: readonly object[]): void {
		for (const event of events) {
			this.write(enveloped(JSON.stringify(event)));
		}
	}

	write(bytes: Uint8Array): void {
		this.#stream.write(bytes);
	}

	/** Ends the stream with a status. */
	end(code: number, name: string, message: string): void {
		const fields = { "grpc-status": String(code), "grpc-message": encodeURIComponent(message) };
		const isGrpc = /grpc\+/.test(this.#contentType);
		this.#stream.on("wantTrailers", () => this.#stream.sendTrailers(isGrpc ? fields : {}));
		if (this.#contentType === connect) {
			const frame = JSON.stringify({ error: { code: name, message } });
			this.#stream.end(encodeEnvelope(2, Buffer.from(frame)));
		} else if (isGrpc) {
			this.#stream.end();
		} else {
			const lines = Object.entries(fields).map(([field, value]) => `${field}: ${value}\r\n`);
			this.#stream.end(encodeEnvelope(0x80, Buffer.from(lines.join(""))));
		}
	}

	/** Ends the connection. */
	lose(): void {
		this.#stream.session?.destroy();
	}
}

/** A request as a client has made it: the agent asks for bookmarks in addition. */
function withoutBookmarks(request: Readonly<Record<string, unknown>>): unknown {
	const { bookmarks: _, watches, ...others } = request;
	const inner = Array.isArray(watches)
		? watches.map((each) => ({ ...each, request: withoutBookmarks(each.request) }))
		: undefined;
	return { ...others, ...(inner && { watches: inner }) };
}

/** Two servers, and the streams that have begun at either. */
async function startServers() {
	const served: Served[] = [];
	const waiting: (() => void)[] = [];
	const start = () =>
		startUpstream((stream, headers) => {
			const chunks: Buffer[] = [];
			stream.on("data", (chunk: Buffer) => chunks.push(chunk));
			stream.on("end", () => {
				const text = Buffer.concat(chunks).subarray(5).toString();
				const request = withoutBookmarks(JSON.parse(text));
				served.push(new Served(stream, String(headers["content-type"]), request));
				waiting.shift()?.();
			});
		});
	const upstreams: readonly RawUpstream[] = [await start(), await start()];
	let taken = 0;
	return {
		upstreams,
		addresses: upstreams.map(({ address }) => address),
		/** The next stream that begins. */
		next: async (): Promise<Served> => {
			while (served[taken] === undefined) {
				await new Promise<void>((resolve) => waiting.push(resolve));
			}
			taken += 1;
			return served[taken - 1] as Served;
		},
		get streams() {
			return served.length;
		},
	};
}

/** Begins a watch. */
function begin(
	address: string,
	contentType: string,
	request: object = { namePrefix: "a" },
	options: { readonly path?: string; readonly headers?: Readonly<Record<string, string>> } = {},
) {
	const call: RawCall = post(
		...([openSession(address), options.path ?? path, enveloped(JSON.stringify(request))] as const),
		{ contentType, ...(options.headers && { headers: options.headers }) },
	);
	let text = "";
	call.stream.on("data", (chunk: string) => {
		text += chunk;
	});
	/** Resolves when the client has got the text. */
	const has = (part: string) =>
		expect.poll(() => text, { interval: 5, timeout: 300_000 }).toContain(part);
	return { ...call, has };
}

/** The messages of a body, without those that end the stream. */
function messagesOf(body: string): readonly unknown[] {
	const messages: unknown[] = [];
	let rest = Buffer.from(body, "latin1");
	while (rest.length > 0) {
		const size = 5 + rest.readUInt32BE(1);
		if (rest[0] === 0) {
			messages.push(JSON.parse(rest.subarray(5, size).toString()));
		}
		rest = rest.subarray(size);
	}
	return messages;
}

describe.each(protocols)("a watch over %s whose server is lost", (_name, contentType) => {
	it("goes on at the other server, even if it is lost within a message and within a revision", async () => {
		const servers = await startServers();
		const agent = await startReadyAgent(servers.addresses);
		const watch = begin(agent.address, contentType);
		const first = await servers.next();
		expect(first.request).toEqual({ namePrefix: "a" });
		first.begin();
		first.send(upsert("a", "3"), endOfSnapshot, upsert("b", "6", "6"), upsert("c", "7"));
		first.write(enveloped(JSON.stringify(upsert("d", "7"))).subarray(0, 30));
		await watch.has('"c"');
		first.lose();
		const second = await servers.next();
		expect(second.request).toEqual({ namePrefix: "a", afterVersion: "6" });
		second.begin();
		second.send(upsert("c", "7"), upsert("d", "7"), upsert("e", "7", "7"));
		await watch.has('"e"');
		// It stops.
		second.end(14, "unavailable", "the server is stopping");
		const third = await servers.next();
		expect(third.request).toEqual({ namePrefix: "a", afterVersion: "7" });
		third.begin();
		third.send(upsert("f", "8", "8"));
		third.end(10, "aborted", "the watch fell behind");
		const { status, body, rstCode } = await watch.ended;
		expect({ status, rstCode }).toMatchObject({ rstCode: 0 });
		expect(`${status} ${body}`).toMatch(/grpc 10|grpc-status: 10|"code":"aborted"/);
		expect(messagesOf(body)).toEqual(
			[
				...[upsert("a", "3"), endOfSnapshot, upsert("b", "6", "6"), upsert("c", "7")],
				...[upsert("d", "7"), upsert("e", "7", "7"), upsert("f", "8", "8")],
			].map((each) => JSON.parse(JSON.stringify(each))),
		);
	});

	it("ends with Aborted within its snapshot", async () => {
		const servers = await startServers();
		const agent = await startReadyAgent(servers.addresses);
		const watch = begin(agent.address, contentType);
		const first = await servers.next();
		first.begin();
		first.send(upsert("a", "3"));
		await watch.has('"a"');
		first.lose();
		const { status, body } = await watch.ended;
		expect(`${status} ${body}`).toMatch(/grpc 10|grpc-status: 10|"code":"aborted"/);
		expect(servers.streams).toBe(1);
	});

	it("begins again if nothing of it was passed on", async () => {
		const servers = await startServers();
		const agent = await startReadyAgent(servers.addresses);
		const watch = begin(agent.address, contentType);
		const first = await servers.next();
		first.begin();
		first.write(enveloped(JSON.stringify(upsert("a", "3"))).subarray(0, 20));
		await once(watch.stream, "response");
		first.lose();
		const second = await servers.next();
		expect(second.request).toEqual({ namePrefix: "a" });
		second.begin();
		second.send(endOfSnapshot);
		await watch.has("endOfSnapshot");
		watch.stream.close();
	});

	it("ends with the error of the server that can't continue it", async () => {
		const servers = await startServers();
		const agent = await startReadyAgent(servers.addresses);
		const watch = begin(agent.address, contentType, { afterVersion: "5" });
		const first = await servers.next();
		first.begin();
		first.send(upsert("a", "6", "6"));
		await watch.has('"a"');
		first.lose();
		const second = await servers.next();
		second.begin();
		second.end(11, "out_of_range", "version 6 is no longer available");
		const { status, body } = await watch.ended;
		expect(`${status} ${body}`).toMatch(/grpc 11|grpc-status: 11|"code":"out_of_range"/);
	});

	it("ends with the error of a server that responds with nothing but a head", async () => {
		const servers = await startServers();
		const agent = await startReadyAgent(servers.addresses);
		const watch = begin(agent.address, contentType, { afterVersion: "5" });
		const first = await servers.next();
		first.begin();
		first.send(upsert("a", "6", "6"));
		await watch.has('"a"');
		first.lose();
		const second = await servers.next();
		// Connect has no such response, but a server may refuse a request before it knows its protocol.
		const unauthenticated = { "grpc-status": "16", "grpc-message": "the token has ended" };
		second.begin(contentType === connect ? { ":status": "401" } : unauthenticated);
		const { status, body } = await watch.ended;
		expect(`${status} ${body}`).toMatch(/grpc 16|grpc-status: 16|"code":"unauthenticated"/);
	});
});

describe("a watch that was cut off", () => {
	/** A watch that has reached version 6. */
	async function startWatch(
		limits: Readonly<Record<string, number>> = {},
		headers: Readonly<Record<string, string>> = {},
	) {
		const servers = await startServers();
		const agent = await startReadyAgent(servers.addresses, { forwardingLimits: limits });
		const watch = begin(agent.address, connect, { afterVersion: "5" }, { headers });
		const first = await servers.next();
		first.begin();
		first.send(upsert("a", "6", "6"));
		await watch.has('"a"');
		return { servers, agent, watch, first };
	}

	it("waits for a server, and goes on when one is ready", async () => {
		const { servers, agent, watch, first } = await startWatch();
		for (const upstream of servers.upstreams) {
			upstream.readyStatus = 503;
			await readiness(agent.address, new RegExp(`${upstream.address}: not ready`));
		}
		first.lose();
		for (const upstream of servers.upstreams) {
			upstream.readyStatus = 200;
		}
		const second = await servers.next();
		expect(second.request).toEqual({ afterVersion: "6" });
		second.begin();
		second.send(upsert("b", "7", "7"));
		await watch.has('"b"');
		expect(await metric(agent.address, "plinth_agent_watch_moves")).toBe(1);
		watch.stream.close();
		await expect.poll(() => metric(agent.address, "plinth_agent_calls_open")).toBe(0);
	});

	it("ends with Unavailable if no server continues it in time", async () => {
		const { servers, agent, watch, first } = await startWatch({ watchMoveMs: 200 });
		for (const upstream of servers.upstreams) {
			upstream.readyStatus = 503;
			await readiness(agent.address, new RegExp(`${upstream.address}: not ready`));
		}
		first.lose();
		expect((await watch.ended).body).toMatch(
			/"code":"unavailable","message":"the watch was cut off, and no server has continued it in 0.2 s: http/,
		);
	});

	it("goes on after bookmarks that its client has not asked for, and does not get", async () => {
		const { servers, watch, first } = await startWatch();
		first.send({ bookmark: {}, version: "12" }, upsert("b", "13"));
		await watch.has('"b"');
		first.lose();
		const second = await servers.next();
		expect(second.request).toEqual({ afterVersion: "12" });
		second.begin();
		second.send(upsert("b", "13"), upsert("c", "13", "13"));
		await watch.has('"c"');
		watch.stream.close();
		const { body } = await watch.ended;
		expect(body).not.toContain("bookmark");
		expect(body.split('"b"')).toHaveLength(2);
	});

	it("ends at the deadline of its client", async () => {
		const { servers, agent, watch, first } = await startWatch({}, { "connect-timeout-ms": "3000" });
		for (const upstream of servers.upstreams) {
			upstream.readyStatus = 503;
			await readiness(agent.address, new RegExp(`${upstream.address}: not ready`));
		}
		first.lose();
		expect((await watch.ended).body).toMatch(/"code":"deadline_exceeded"/);
		await expect.poll(() => metric(agent.address, "plinth_agent_calls_open")).toBe(0);
	});

	it("is not requested again once its client is gone", async () => {
		const { servers, agent, watch, first } = await startWatch();
		for (const upstream of servers.upstreams) {
			upstream.readyStatus = 503;
			await readiness(agent.address, new RegExp(`${upstream.address}: not ready`));
		}
		first.lose();
		watch.stream.close();
		await expect
			.poll(() => metric(agent.address, "plinth_agent_calls_total", 'outcome="canceled"'))
			.toBe(1);
		for (const upstream of servers.upstreams) {
			upstream.readyStatus = 200;
			await readiness(agent.address, new RegExp(`${upstream.address}: ready`));
		}
		expect(servers.streams).toBe(1);
	});

	it("ends with Unavailable if its response is compressed", async () => {
		const servers = await startServers();
		const agent = await startReadyAgent(servers.addresses);
		const watch = begin(agent.address, connect);
		const first = await servers.next();
		first.begin({ "connect-content-encoding": "gzip" });
		first.write(encodeEnvelope(1, Buffer.from("compressed")));
		await watch.has("compressed");
		first.lose();
		expect((await watch.ended).body).toMatch(
			/"code":"unavailable","message":"the response was cut off/,
		);
		expect(servers.streams).toBe(1);
	});

	it("is reset within a message that is too large to be held", async () => {
		const { servers, watch, first } = await startWatch({ watchMessageBytes: 1_000 });
		first.write(enveloped(JSON.stringify(upsert("x".repeat(5_000), "7"))).subarray(0, 4_000));
		await watch.has("xxx");
		first.lose();
		expect((await watch.ended).rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
		expect(servers.streams).toBe(1);
	});

	it("goes on after a version that came behind such a message", async () => {
		const { servers, watch, first } = await startWatch({ watchMessageBytes: 1_000 });
		first.send(upsert("x".repeat(100_000), "7"), upsert("b", "7", "7"));
		await watch.has('"b"');
		first.lose();
		expect((await servers.next()).request).toEqual({ afterVersion: "7" });
		watch.stream.close();
	});
});

describe("a set of watches that is cut off", () => {
	it("goes on without those whose snapshots were not complete, which end with Aborted", async () => {
		const servers = await startServers();
		const agent = await startReadyAgent(servers.addresses);
		const request = {
			watches: ["a", "b", "c", "d"].map((id) => ({ id, request: { namePrefix: id } })),
		};
		const watch = begin(agent.address, connect, request, { path: setPath });
		const first = await servers.next();
		first.begin();
		const of = (watchId: string, event: object) => ({ watchId, event });
		const sent = [
			of("a", endOfSnapshot),
			of("a", upsert("a1", "6")),
			of("b", upsert("b1", "3")),
			{ watchId: "c", end: { code: 7, message: "not allowed" } },
		];
		first.send(...sent);
		await watch.has("not allowed");
		first.lose();
		const second = await servers.next();
		expect(second.request).toEqual({
			watches: [
				{ id: "a", request: { namePrefix: "a", afterVersion: "5" } },
				{ id: "d", request: { namePrefix: "d" } },
			],
		});
		second.begin();
		const then = [of("d", endOfSnapshot), of("a", upsert("a2", "6", "6"))];
		second.send(of("a", upsert("a1", "6")), ...then);
		second.end(16, "unauthenticated", "the token has ended");
		const { body } = await watch.ended;
		expect(messagesOf(body)).toEqual([
			...JSON.parse(JSON.stringify(sent)),
			{
				watchId: "b",
				end: {
					code: 10,
					message: "the watch was cut off before its snapshot was complete: watch again",
				},
			},
			...JSON.parse(JSON.stringify(then)),
		]);
		expect(body).toContain('"code":"unauthenticated"');
	});

	const unavailable = { code: 14, message: "the storage did not answer in time" };

	it.each(protocols)(
		"goes on over %s where a watch is not refused as unavailable",
		async (...protocol) => {
			const [, contentType] = protocol;
			const servers = await startServers();
			const agent = await startReadyAgent(servers.addresses);
			const request = { watches: ["a", "b"].map((id) => ({ id, request: {} })) };
			const watch = begin(agent.address, contentType, request, { path: setPath });
			const first = await servers.next();
			first.begin();
			const sent = [{ watchId: "a", event: endOfSnapshot }];
			first.send(...sent, { watchId: "b", end: unavailable });
			const second = await servers.next();
			expect(second.request).toEqual({
				watches: [
					{ id: "a", request: { afterVersion: "5" } },
					{ id: "b", request: {} },
				],
			});
			second.begin();
			const then = ["b", "a"].map((watchId) => ({
				watchId,
				event: watchId === "b" ? { endOfSnapshot: {}, version: "6" } : upsert("a1", "6", "6"),
			}));
			second.send(...then);
			await watch.has('"6"');
			second.end(0, "", "");
			expect(messagesOf((await watch.ended).body)).toEqual([...sent, ...then]);
		},
	);

	it("ends the watch alone that all servers refuse", async () => {
		const servers = await startServers();
		const agent = await startReadyAgent(servers.addresses, {
			forwardingLimits: { watchMoveMs: 1_000 },
		});
		const request = { watches: ["a", "b"].map((id) => ({ id, request: {} })) };
		const watch = begin(agent.address, connect, request, { path: setPath });
		let requests = 0;
		for (;;) {
			const served = await servers.next();
			requests += 1;
			served.begin();
			const { watches } = served.request as {
				readonly watches: readonly { readonly id: string }[];
			};
			if (watches.length === 1) {
				expect(watches).toEqual([{ id: "a", request: { afterVersion: "5" } }]);
				served.send({ watchId: "a", event: upsert("a1", "6", "6") });
				break;
			}
			served.send({
				watchId: "a",
				event: requests === 1 ? endOfSnapshot : { bookmark: {}, version: "5" },
			});
			served.send({ watchId: "b", end: unavailable });
		}
		await watch.has("a1");
		watch.stream.close();
		const received = messagesOf((await watch.ended).body);
		expect(received).toContainEqual({ watchId: "b", end: unavailable });
		expect(JSON.stringify(received).split('"end"')).toHaveLength(2);
		expect(requests).toBeGreaterThan(2);
	});

	it.each(protocols)("ends with OK over %s if none can go on", async (_name, contentType) => {
		const servers = await startServers();
		const agent = await startReadyAgent(servers.addresses);
		const request = { watches: [{ id: "a", request: {} }] };
		const watch = begin(agent.address, contentType, request, { path: setPath });
		const first = await servers.next();
		first.begin();
		first.send({ watchId: "a", event: upsert("a", "3") });
		await watch.has("upsert");
		first.lose();
		const { status, body, rstCode } = await watch.ended;
		expect(rstCode).toBe(0);
		expect(`${status} ${body}`).toMatch(/grpc 0|grpc-status: 0|\{\}$/);
		expect(messagesOf(body)).toHaveLength(2);
	});
});
