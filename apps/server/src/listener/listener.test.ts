import { once } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
	createConnectTransport,
	createGrpcTransport,
	createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { createRpcRouter } from "@plinth/rpc-server";
import { type Logger, silentLogger, systemClock } from "@plinth/runtime";
import { afterEach, describe, expect, it, vi } from "vitest";
import { http2OfTests } from "../http2.fixture.ts";
import { echoRouter } from "./echo-router.fixture.ts";
import { Exchanges } from "./exchanges.ts";
import { defaultListenerLimits, type ListenerLimits } from "./limits.ts";
import { type Listener, openListener } from "./listener.ts";
import { createPlainEndpoints } from "./plain-endpoints.ts";
import { createRpcHandler } from "./rpc-handler.ts";

const open: Listener[] = [];

afterEach(async () => {
	await Promise.all(open.splice(0).map((listener) => listener.close(0)));
});

interface Started {
	readonly listener: Listener;
	readonly url: string;
	readonly port: number;
	/** Ends streams. */
	readonly streamsEnd: AbortController;
	/** Lets writes finish. */
	release(): void;
}

function exchangesOf(limits: Partial<ListenerLimits>): Exchanges {
	return new Exchanges({
		clock: systemClock,
		logger: silentLogger,
		limits: { ...defaultListenerLimits, ...limits },
	});
}

async function start(
	limits: Partial<ListenerLimits> = {},
	logger: Logger = silentLogger,
): Promise<Started> {
	const streamsEnd = new AbortController();
	const released = Promise.withResolvers<void>();
	const router = echoRouter({ streamsEnd: streamsEnd.signal }, released.promise);
	const listener = await openListener({
		...http2OfTests(),
		address: { host: "127.0.0.1", port: 0 },
		handler: createRpcHandler({
			router,
			fallback: createPlainEndpoints(router, () => ({ problems: [], pending: [] })),
			exchanges: exchangesOf(limits),
			logger: silentLogger,
		}),
		limits: { ...defaultListenerLimits, ...limits },
		clock: systemClock,
		logger,
	});
	open.push(listener);
	const { port } = listener.address;
	return {
		listener,
		port,
		url: `http://127.0.0.1:${port}`,
		streamsEnd,
		release: () => released.resolve(),
	};
}

type TransportOf = (baseUrl: string) => Transport;

const transports: readonly (readonly [string, TransportOf])[] = [
	["Connect over HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
	["Connect over HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })],
	["gRPC over HTTP/2", (baseUrl) => createGrpcTransport({ baseUrl })],
	["gRPC-Web over HTTP/1.1", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
	["gRPC-Web over HTTP/2", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" })],
];

describe.each(transports)("a listener, by %s", (_name, transportOf) => {
	it("serves calls and streams on the same port", async () => {
		const { url } = await start();
		const client = createClient(ResourceService, transportOf(url));
		const { resource } = await client.read({ id: { name: "miles" } });
		expect(resource?.id?.name).toBe("miles");
		for await (const event of client.watchList({})) {
			expect(event.event.case).toBe("endOfSnapshot");
			break;
		}
	});

	it("ends streams with the reason of the signal, and then closes", async () => {
		const { url, listener, streamsEnd } = await start();
		const client = createClient(ResourceService, transportOf(url));
		const events = client.watchList({})[Symbol.asyncIterator]();
		await events.next();
		streamsEnd.abort(new ConnectError("the server is stopping", Code.Unavailable));
		const closed = listener.close(60_000);
		const failure = await events.next().catch((error: unknown) => error);
		expect(failure).toBeInstanceOf(ConnectError);
		expect(String(failure)).toBe("ConnectError: [unavailable] the server is stopping");
		await closed;
	});

	it("lets a running call finish while it closes, and accepts no other connection", async () => {
		const { url, listener, port, release } = await start();
		const client = createClient(ResourceService, transportOf(url));
		await client.read({ id: { name: "warm" } });
		const call = client.write({ resource: { id: { name: "late" } } });
		await reached(url);
		const closed = listener.close(60_000);
		const refused = connect(port, "127.0.0.1");
		const [error] = await once(refused, "error");
		expect(error).toMatchObject({ code: "ECONNREFUSED" });
		release();
		expect((await call).resource?.id?.name).toBe("late");
		await closed;
	});

	it("cuts what does not end within the limit", async () => {
		const { url, listener } = await start();
		const client = createClient(ResourceService, transportOf(url));
		const events = client.watchList({})[Symbol.asyncIterator]();
		await events.next();
		const failed = events.next().catch((error: unknown) => error);
		await listener.close(10);
		expect(await failed).toBeInstanceOf(ConnectError);
	});
});

/** Resolves after a round trip on another connection: what was sent before has been read. */
async function reached(url: string): Promise<void> {
	// Without an agent, the connection ends with the response.
	const request = httpRequest(`${url}/healthz`, { agent: false }).end();
	const [response] = await once(request, "response");
	response.resume();
	await once(response, "close");
}

async function connected(port: number): Promise<Socket> {
	const socket = connect(port, "127.0.0.1");
	socket.on("error", () => {});
	await once(socket, "connect");
	return socket;
}

async function ended(socket: Socket): Promise<string> {
	let received = "";
	socket.setEncoding("latin1");
	socket.on("data", (data: string) => {
		received += data;
	});
	await once(socket, "close");
	return received;
}

describe("a connection of HTTP/1.1, while the listener closes", () => {
	const get = "GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n";
	const head = "POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n";

	it("stays open after a response that overtakes its request, until the request has arrived", async () => {
		const { listener, port } = await start({ lingerMs: 300 });
		const socket = await connected(port);
		socket.write(get);
		await once(socket, "data");
		const closed = listener.close(60_000);
		socket.write(head);
		const [refused] = await once(socket, "data");
		expect(String(refused)).toMatch(/^HTTP\/1.1 404 /);
		expect(String(refused)).not.toContain("connection: close");
		socket.write("body");
		socket.write(get);
		const [later] = await once(socket, "data");
		expect(String(later)).toMatch(/^HTTP\/1.1 404 /);
		await closed;
	});

	it.each([
		["does not send the rest of a request that has its response", head],
		["has sent a part of its next request", `${get}GET /nowhere HTTP/1.1\r\n`],
	])("ends after the linger time if its client %s", async (_name, sent) => {
		const warn = vi.fn();
		const { url, listener, port } = await start(
			{ lingerMs: 50, headersMs: 600_000, requestMs: 600_000 },
			{ ...silentLogger, warn },
		);
		const early = await connected(port);
		early.write(sent);
		await once(early, "data");
		const late = await connected(port);
		late.write(get);
		await once(late, "data");
		await reached(url);
		const closed = listener.close(20_000);
		late.write(sent);
		await closed;
		// That it had to end what did not end in time.
		expect(warn).not.toHaveBeenCalled();
	});

	it("ends with the response to a request that has arrived", async () => {
		const { url, listener, port, release } = await start({ lingerMs: 60_000 });
		const socket = await connected(port);
		const write = "/plinth.resource.v1.ResourceService/Write";
		socket.write(
			`POST ${write} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
		);
		await reached(url);
		const closed = listener.close(120_000);
		release();
		expect(await ended(socket)).toMatch(/^HTTP\/1.1 200 .*\r\nconnection: close\r\n/is);
		await closed;
	});
});

describe("a connection without complete headers", () => {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	const emptySettings = "\0\0\0\x04\0\0\0\0\0";

	it.each([
		["is silent", ""],
		["sends half of the HTTP/2 preface", preface.slice(0, 10)],
		["sends half of its HTTP/1.1 headers", "GET /healthz HTTP/1.1\r\nhost: x\r\n"],
		["opens HTTP/2 and asks for nothing", preface + emptySettings],
	])("is closed when it %s", async (_name, sent) => {
		const { port } = await start({ headersMs: 150 });
		const socket = await connected(port);
		socket.write(sent, "latin1");
		await ended(socket);
	});

	it("is closed on a later request too", async () => {
		const { port } = await start({ headersMs: 150 });
		const socket = await connected(port);
		socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /healthz HT");
		expect(await ended(socket)).toMatch(/^HTTP\/1.1 200 OK/);
	});

	it("is closed immediately when the listener closes", async () => {
		const { port, listener } = await start();
		const sockets = await Promise.all([connected(port), connected(port)]);
		sockets[1].write("GET / HTTP/1.1\r\n");
		await reached(`http://127.0.0.1:${port}`);
		const ends = sockets.map(ended);
		await listener.close(60_000);
		await Promise.all(ends);
	});

	it("does not delay others, nor does one that closes before it sends anything", async () => {
		const { port, url } = await start();
		const silent = await connected(port);
		const gone = await connected(port);
		gone.end("PRI");
		await ended(gone);
		await reached(url);
		silent.destroy();
	});

	it("is served once they are complete, however slowly they trickle in", async () => {
		const { port } = await start();
		const http1 = await connected(port);
		for (const byte of "POST /nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n") {
			http1.write(byte);
			await reached(`http://127.0.0.1:${port}`);
		}
		expect(await ended(http1)).toMatch(/^HTTP\/1.1 404/);

		const http2 = await connected(port);
		for (const byte of preface + emptySettings) {
			http2.write(byte, "latin1");
			await reached(`http://127.0.0.1:${port}`);
		}
		const [frame] = await once(http2, "data");
		// The fourth byte of a frame is its type; 4 is SETTINGS, which a server sends first.
		expect(frame[3]).toBe(4);
		http2.destroy();
	});
});

describe("a connection without a call", () => {
	it("is closed after a while, by HTTP/2 too", async () => {
		const { url, port } = await start({ idleMs: 100 });
		const session = connectHttp2(url);
		const stream = session.request({ ":path": "/healthz" });
		stream.resume();
		await once(stream, "close");
		await once(session, "close");

		const socket = await connected(port);
		socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
		expect(await ended(socket)).toContain("200 OK");
	});

	it("is not closed while a stream is open", async () => {
		const { url } = await start({ idleMs: 50 });
		const transport = createGrpcTransport({ baseUrl: url });
		const client = createClient(ResourceService, transport);
		const events = client.watchList({})[Symbol.asyncIterator]();
		await events.next();
		const next = events.next();
		const quiet = new Promise((resolve) => setTimeout(resolve, 300, "still open"));
		expect(await Promise.race([next, quiet])).toBe("still open");
		next.catch(() => {});
	});
});

describe("a client that stops reading and then vanishes", () => {
	/** A router whose WatchList sends without end, and reports when it was released. */
	async function startFlood() {
		const ended = Promise.withResolvers<void>();
		const resource = { id: { name: "x".repeat(1_000_000) } };
		const router = createRpcRouter({ clock: systemClock }).service(ResourceService, {
			async *watchList() {
				try {
					for (;;) {
						yield { event: { case: "upsert", value: { resource } } };
					}
				} finally {
					ended.resolve();
				}
			},
		});
		const listener = await openListener({
			...http2OfTests(),
			address: { host: "127.0.0.1", port: 0 },
			handler: createRpcHandler({
				router,
				fallback: createPlainEndpoints(router, () => ({ problems: [], pending: [] })),
				exchanges: exchangesOf({}),
				logger: silentLogger,
			}),
			limits: defaultListenerLimits,
			clock: systemClock,
			logger: silentLogger,
		});
		open.push(listener);
		return { port: listener.address.port, ended: ended.promise };
	}

	const path = "/plinth.resource.v1.ResourceService/WatchList";
	const contentType = "application/connect+json";
	const message = "\0\0\0\0\x02{}";

	it("leaves nothing running, by HTTP/1.1", async () => {
		const { port, ended } = await startFlood();
		const socket = await connected(port);
		socket.write(
			`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${contentType}\r\ncontent-length: 7\r\n\r\n${message}`,
			"latin1",
		);
		await once(socket, "readable");
		await reached(`http://127.0.0.1:${port}`);
		socket.destroy();
		await ended;
	});

	it("leaves nothing running, by HTTP/2", async () => {
		const { port, ended } = await startFlood();
		const session = connectHttp2(`http://127.0.0.1:${port}`);
		session.on("error", () => {});
		const stream = session.request({
			":method": "POST",
			":path": path,
			"content-type": contentType,
		});
		stream.on("error", () => {});
		stream.end(message, "latin1");
		await once(stream, "readable");
		await reached(`http://127.0.0.1:${port}`);
		session.destroy();
		await ended;
	});
});

describe("a request that is not a call", () => {
	it("gets a list of the paths that exist", async () => {
		const { url } = await start();
		const health = await fetch(`${url}/healthz`);
		expect([health.status, await health.text()]).toEqual([200, "ok\n"]);
		const ready = await fetch(`${url}/readyz`);
		expect([ready.status, await ready.text()]).toEqual([200, "ready\n"]);
		const lost = await fetch(`${url}/plinth.resource.v1.ResourceService/Raed`);
		expect(lost.status).toBe(404);
		expect(await lost.text()).toMatch(/not found: .*\/Raed.*plinth\.resource\.v1\.ResourceService/);
	});

	it("to the path of a method gets told what to send", async () => {
		const { url } = await start();
		const service = `${url}/plinth.resource.v1.ResourceService`;
		const text = await fetch(`${service}/Read`, { method: "POST", body: "{}" });
		expect([text.status, await text.text()]).toEqual([
			415,
			"unsupported content type: send application/json, or another content type of Connect, gRPC or gRPC-Web\n",
		]);
		const get = await fetch(`${service}/Write`);
		expect([get.status, await get.text()]).toEqual([
			405,
			"method not allowed: send POST, with a content type such as application/json\n",
		]);
		const head = await fetch(`${service}/Write`, { method: "HEAD" });
		expect([head.status, await head.text()]).toEqual([405, ""]);
	});

	it("for readiness lists the reasons why the server is not ready", async () => {
		const problems = ["storage: the disk failed", "references: another schema is active"];
		const router = createRpcRouter({ clock: systemClock });
		const listener = await openListener({
			...http2OfTests(),
			address: { host: "127.0.0.1", port: 0 },
			handler: createPlainEndpoints(router, () => ({ problems, pending: [] })),
			limits: defaultListenerLimits,
			clock: systemClock,
			logger: silentLogger,
		});
		open.push(listener);
		const ready = await fetch(`http://127.0.0.1:${listener.address.port}/readyz`);
		expect([ready.status, await ready.text()]).toEqual([
			503,
			"not ready\nstorage: the disk failed\nreferences: another schema is active\n",
		]);
	});

	it("without a Host header gets a response, and has no effect on others", async () => {
		const { port, url } = await start();
		for (const host of ["", "host: /\\\r\n"]) {
			const socket = await connected(port);
			socket.write(
				`POST /plinth.resource.v1.ResourceService/Read HTTP/1.0\r\n${host}content-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
			);
			expect(await ended(socket)).toMatch(/^HTTP\/1.1 400/);
		}
		await reached(url);
	});

	it("to upgrade to HTTP/2 is served over HTTP/1.1", async () => {
		const { port } = await start();
		const agent = new Agent();
		const call = httpRequest({
			...{ agent, host: "127.0.0.1", port, path: "/healthz" },
			headers: {
				connection: "Upgrade, HTTP2-Settings",
				upgrade: "h2c",
				"http2-settings": "AAMAAABkAAQCAAAAAAIAAAAA",
			},
		});
		call.end();
		const [response] = await once(call, "response");
		expect(response.statusCode).toBe(200);
		response.resume();
		agent.destroy();
	});
});

describe("openListener", () => {
	it("names an address that is taken, and the way out", async () => {
		const { listener } = await start();
		await expect(
			openListener({
				address: listener.address,
				handler: () => {},
				limits: defaultListenerLimits,
				clock: systemClock,
				logger: silentLogger,
			}),
		).rejects.toThrow(
			`can't listen on 127.0.0.1:${listener.address.port}: another program listens there`,
		);
	});
});
