import { once } from "node:events";
import { type ClientHttp2Session, constants, type OutgoingHttpHeaders } from "node:http2";
import type { HandlerContext } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { openSession, openSocket, post } from "../../raw-calls.fixture.ts";
import { startListener } from "../../started-listener.fixture.ts";
import { echoRouter } from "../echo-router.fixture.ts";
import { exchangeOf } from "../exchange.ts";

const read = "/plinth.resource.v1.ResourceService/Read";
const write = "/plinth.resource.v1.ResourceService/Write";
const watch = "/plinth.resource.v1.ResourceService/WatchList";

/** Resolves when the condition holds, after any number of iterations of the event loop. */
async function until(condition: () => boolean): Promise<void> {
	while (!condition()) {
		await new Promise((resolve) => setImmediate(resolve));
	}
}

/** Sends a request without a body. Returns the status, the headers and the body. */
async function get(session: ClientHttp2Session, headers: OutgoingHttpHeaders) {
	const stream = session.request(headers);
	if (!stream.writableEnded) {
		stream.end();
	}
	const [received] = await once(stream, "response");
	const chunks: Buffer[] = [];
	stream.on("data", (chunk: Buffer) => chunks.push(chunk));
	await once(stream, "close");
	return { ...received, body: Buffer.concat(chunks).toString() };
}

describe("a stream of Plinth's own framing", () => {
	it("serves a call, with the date of its response", async () => {
		const { address } = await startListener(echoRouter({}));
		const { stream, ended } = post(openSession(address), read, '{"id":{"name":"a"}}');
		const [headers] = await once(stream, "response");
		expect(Date.parse(headers.date)).toBeGreaterThan(0);
		expect((await ended).body).toBe('{"resource":{"id":{"name":"a"}}}');
	});

	it("responds to CONNECT, HEAD and unknown expectations, and continues requests that wait", async () => {
		const { address } = await startListener(echoRouter({}));
		const session = openSession(address);
		const path = { ":path": "/nowhere" };
		expect(await get(session, { ...path, ":method": "HEAD" })).toMatchObject({
			...{ ":status": 404, "content-length": "13", body: "" },
		});
		expect(await get(session, { ...path, expect: "cake" })).toMatchObject({ ":status": 417 });
		const tunnel = { ":method": "CONNECT", ":authority": "localhost:1" };
		expect(await get(session, tunnel)).toMatchObject({ ":status": 405 });
		const waiting = session.request({
			...{ ":method": "POST", ":path": read, "content-type": "application/json" },
			expect: "100-continue",
		});
		await once(waiting, "continue");
		waiting.end("{}");
		const [headers] = await once(waiting, "response");
		expect(headers[":status"]).toBe(200);
		waiting.resume();
		await once(waiting, "close");
	});

	it("is released when its client resets it in the middle of the body", async () => {
		const { address, exchanges } = await startListener(echoRouter({}));
		const session = openSession(address);
		const half = post(session, write, Buffer.alloc(100_000, " "), { isOpen: true });
		await until(() => exchanges.open === 1);
		half.stream.close(constants.NGHTTP2_CANCEL);
		await until(() => exchanges.open === 0);
		expect((await post(session, read, "{}").ended).status).toBe("200");
	});

	it("is released when its connection breaks while handlers run", async () => {
		const release = Promise.withResolvers<void>();
		const { address, exchanges } = await startListener(echoRouter({}, release.promise));
		const session = openSession(address);
		for (let call = 0; call < 100; call += 1) {
			post(session, call % 2 === 0 ? write : watch, "{}");
		}
		await until(() => exchanges.open === 100);
		session.destroy();
		release.resolve();
		await until(() => exchanges.open === 0);
		expect(exchanges.pendingBytes).toBe(0);
	});

	it("ends well after its client has sent GOAWAY", async () => {
		const release = Promise.withResolvers<void>();
		const { address, exchanges } = await startListener(echoRouter({}, release.promise));
		const session = openSession(address);
		const call = post(session, write, "{}");
		await until(() => exchanges.open === 1);
		session.goaway(constants.NGHTTP2_NO_ERROR);
		release.resolve();
		expect(await call.ended).toMatchObject({ status: "200", rstCode: 0 });
	});

	it("serves thousands, of which the maximum are open at the same time", async () => {
		const release = Promise.withResolvers<void>();
		const requestGate = ({ values }: HandlerContext) =>
			exchangeOf(values).admit({ leave: () => {} });
		const router = echoRouter({ requestGate }, release.promise);
		const { address, exchanges } = await startListener(router);
		const session = openSession(address);
		await once(session, "remoteSettings");
		const calls = Array.from({ length: 2_000 }, () => post(session, write, "{}"));
		await until(() => exchanges.open === 1_024);
		release.resolve();
		for (const { ended } of calls) {
			expect(await ended).toMatchObject({ status: "200", rstCode: 0 });
		}
		expect(exchanges.open).toBe(0);
	});

	it("drops 64 MB that nobody reads, and gives the credit back", async () => {
		const { address } = await startListener(echoRouter({}));
		const session = openSession(address);
		const { ended, stream } = post(session, "/nowhere", "", { isOpen: true });
		const [headers] = await once(stream, "response");
		expect(headers[":status"]).toBe(404);
		stream.end(Buffer.alloc(64_000_000));
		expect(await ended).toMatchObject({ rstCode: 0, body: "no such path\n" });
	});

	it("reads a body of many tiny parts", async () => {
		const { address } = await startListener(echoRouter({}));
		const { stream, ended } = post(openSession(address), read, "{", { isOpen: true });
		for (let part = 0; part < 2_000; part += 1) {
			stream.write(" ");
		}
		stream.end('"id":{"name":"b"}}');
		expect((await ended).body).toBe('{"resource":{"id":{"name":"b"}}}');
	});

	it("waits for the credit of a client that reads nothing, and counts what waits", async () => {
		const { address, exchanges } = await startListener(echoRouter({}));
		const session = openSession(address, { initialWindowSize: 0 });
		const { stream } = post(session, read, '{"id":{"name":"c"}}');
		await once(stream, "response");
		await until(() => exchanges.pendingBytes > 0);
		expect(exchanges.pendingBytes).toBe('{"resource":{"id":{"name":"c"}}}'.length);
		session.settings({ initialWindowSize: 65_535 });
		await until(() => exchanges.pendingBytes === 0);
	});

	it("counts the response of a request that has not ended as short, and resets it later", async () => {
		const { address, clock } = await startListener(echoRouter({}));
		const { stream, ended } = post(openSession(address), "/nowhere", "x", { isOpen: true });
		await once(stream, "end");
		for (let second = 0; second < 7; second += 1) {
			clock.advance(1_000);
		}
		expect((await ended).rstCode).toBe(constants.NGHTTP2_NO_ERROR);
	});
});

describe("a connection of Plinth's own framing", () => {
	it("ends when its client breaks the protocol, with the streams on it", async () => {
		const { address, exchanges } = await startListener(echoRouter({}));
		const socket = await openSocket(address);
		socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
		// A HEADERS frame before SETTINGS.
		socket.write(Buffer.from([0, 0, 1, 1, 5, 0, 0, 0, 1, 0x82]));
		socket.resume();
		await once(socket, "close");
		expect(exchanges.open).toBe(0);
	});
});
