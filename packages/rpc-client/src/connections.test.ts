import { once } from "node:events";
import { constants, type ServerHttp2Stream } from "node:http2";
import { connect, createServer, type Socket } from "node:net";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { ProbeService } from "../testdata/src/gen/probe_pb.ts";
import type { PlinthTransportOptions } from "./options.ts";
import { framed, head, openRawServer, type Respond, send } from "./raw-server.fixture.ts";
import { createPlinthTransport } from "./transport.ts";

const fine: Respond = (stream) => send(stream, framed({ text: "fine" }));

/** A server, and a client of it with these options. */
async function open(respond: Respond, options: Omit<PlinthTransportOptions, "baseUrl"> = {}) {
	const server = await openRawServer(respond);
	const transport = createPlinthTransport({ baseUrl: server.baseUrl, ...options });
	return {
		server,
		transport,
		client: createClient(ProbeService, transport),
		async [Symbol.asyncDispose]() {
			transport.close();
			await server[Symbol.asyncDispose]();
		},
	};
}

async function codeOf(promise: Promise<unknown>): Promise<string | undefined> {
	try {
		await promise;
	} catch (thrown) {
		return Code[ConnectError.from(thrown).code];
	}
	return "no error";
}

it("sends its headers with every call, unless the call has its own, and never instead of those of the protocol", async () => {
	const received: (string | string[] | undefined)[] = [];
	const respond: Respond = (stream, path, headers) => {
		received.push(headers.authorization, headers["content-type"]);
		fine(stream, path, headers);
	};
	const headers = { authorization: "Bearer a", "content-type": "text/plain" };
	await using connection = await open(respond, { headers });
	await connection.client.unary({});
	await connection.client.unary({}, { headers: { Authorization: "Bearer b" } });
	const type = "application/grpc+proto";
	expect(received).toEqual(["Bearer a", type, "Bearer b", type]);
});

it("names a header that is invalid, and does not show its value", async () => {
	const errorOf = async (call: Promise<unknown>) =>
		ConnectError.from(await call.catch((thrown: unknown) => thrown)).message;
	const headers = { authorization: "Bearer sec\nret" };
	await using plain = await open(fine);
	expect(await errorOf(plain.client.unary({}, { headers }))).toBe(
		"[internal] header authorization has an invalid value",
	);
	await using connection = await open(fine, { headers });
	expect(await errorOf(connection.client.unary({}))).toBe(
		"[internal] field authorization has an invalid value",
	);
	await using named = await open(fine, { headers: { "X-A": "secret" } });
	expect(await errorOf(named.client.unary({}))).toBe('[internal] field "X-A" has an invalid name');
});

describe("a connection", () => {
	it("serves all calls, and is opened once for calls at the same time", async () => {
		await using connection = await open(fine);
		const calls = Array.from({ length: 20 }, () => connection.client.unary({}));
		expect((await Promise.all(calls)).map(({ text }) => text)).toEqual(new Array(20).fill("fine"));
		await connection.client.unary({});
		expect(connection.server.sessions).toHaveLength(1);
	});

	it("is closed when it was unused for long enough, and opened again by a call", async () => {
		const clock = new FakeClock();
		await using connection = await open(fine, { clock, idleConnectionTimeoutMs: 60_000 });
		const { client, server } = connection;
		await client.unary({});
		await clock.advanceAsync(40_000);
		await client.unary({});
		await clock.advanceAsync(40_000);
		expect(server.sessions[0]?.closed).toBe(false);
		await clock.advanceAsync(40_000);
		await expect.poll(() => server.sessions[0]?.closed).toBe(true);
		expect((await client.unary({})).text).toBe("fine");
		expect(server.sessions).toHaveLength(2);
	});

	it("can be the only one of some calls, which fail once it accepts no more", async () => {
		await using connection = await open(fine);
		const { transport, client, server } = connection;
		const one = transport.onOneConnection();
		const only = createClient(ProbeService, one);
		// Calls at the same time get the same one.
		await Promise.all([only.unary({}), only.unary({}), client.unary({})]);
		expect((await only.unary({})).text).toBe("fine");
		const small = createClient(ProbeService, one.reading(3));
		expect(await codeOf(small.unary({}))).toBe("ResourceExhausted");
		expect(server.sessions).toHaveLength(1);

		server.sessions[0]?.goaway(constants.NGHTTP2_NO_ERROR);
		await expect.poll(() => codeOf(only.unary({}))).toBe("Unavailable");
		expect(server.sessions).toHaveLength(1);
		expect((await client.unary({})).text).toBe("fine");
		expect(await codeOf(only.unary({}))).toBe("Unavailable");
		expect(server.sessions).toHaveLength(2);
	});

	it("is verified before the calls that it is the only one of", async () => {
		const clock = new FakeClock();
		const options = { clock, pingIntervalMs: 10_000, pingTimeoutMs: 5_000 };
		await using connection = await open(fine, options);
		const only = createClient(ProbeService, connection.transport.onOneConnection());
		await only.unary({});
		await clock.advanceAsync(20_000);
		expect((await only.unary({})).text).toBe("fine");
		await clock.advanceAsync(20_000);
		connection.server.sessions[0]?.destroy();
		expect(await codeOf(only.unary({}))).toBe("Unavailable");
	});

	it("is not idle while a stream is open", async () => {
		const clock = new FakeClock();
		await using connection = await open(
			(stream) => {
				stream.respond(head);
				stream.write(framed({ text: "first" }));
			},
			{ clock, idleConnectionTimeoutMs: 60_000 },
		);
		const reader = connection.client.serverStream({})[Symbol.asyncIterator]();
		await reader.next();
		await clock.advanceAsync(600_000);
		expect(connection.server.sessions[0]?.closed).toBe(false);
	});

	it("is dead if a ping during a call gets no response", async () => {
		const clock = new FakeClock();
		let stream: ServerHttp2Stream | undefined;
		await using connection = await open((each) => {
			stream = each;
		});
		await using relay = await openRelay(connection.server.baseUrl);
		const transport = createPlinthTransport({
			baseUrl: relay.baseUrl,
			clock,
			pingIntervalMs: 10_000,
			pingTimeoutMs: 5_000,
		});
		const call = codeOf(createClient(ProbeService, transport).unary({}));
		await expect.poll(() => stream).toBeDefined();
		relay.stall();
		await clock.advanceAsync(10_000);
		await clock.advanceAsync(5_000);
		expect(await call).toBe("Unavailable");
		transport.close();
	});

	it("is verified before a call after a pause, and replaced if it is dead", async () => {
		const clock = new FakeClock();
		await using connection = await open(fine);
		await using relay = await openRelay(connection.server.baseUrl);
		const transport = createPlinthTransport({
			baseUrl: relay.baseUrl,
			clock,
			pingIntervalMs: 10_000,
			pingTimeoutMs: 5_000,
		});
		const client = createClient(ProbeService, transport);
		await client.unary({});
		await clock.advanceAsync(20_000);
		await client.unary({});
		expect(connection.server.sessions).toHaveLength(1);
		relay.stall();
		await clock.advanceAsync(20_000);
		const call = client.unary({});
		await clock.advanceAsync(5_000);
		expect((await call).text).toBe("fine");
		expect(connection.server.sessions).toHaveLength(2);
		transport.close();
	});

	it("is not opened again if it is closed while it is verified", async () => {
		const clock = new FakeClock();
		await using connection = await open(fine, {
			clock,
			pingIntervalMs: 10_000,
			pingTimeoutMs: 5_000,
		});
		const { client, server, transport } = connection;
		await client.unary({});
		await clock.advanceAsync(20_000);
		const call = codeOf(client.unary({}));
		transport.close(new ConnectError("stopping", Code.Aborted));
		expect(await call).toBe("Aborted");
		expect(server.sessions).toHaveLength(1);
	});
});

/** Passes bytes on between clients and a server, until it stalls for the connections that are open. */
async function openRelay(target: string) {
	const { hostname, port } = new URL(target);
	const sockets: Socket[] = [];
	const relay = createServer((socket) => {
		const onward = connect(Number(port), hostname);
		for (const each of [socket, onward]) {
			sockets.push(each);
			each.on("error", () => {});
		}
		socket.pipe(onward).pipe(socket);
	});
	relay.listen(0, "127.0.0.1");
	await once(relay, "listening");
	const own: unknown = Object(relay.address()).port;
	return {
		baseUrl: `http://127.0.0.1:${own}`,
		stall() {
			for (const socket of sockets) {
				socket.unpipe();
				socket.pause();
			}
		},
		async [Symbol.asyncDispose]() {
			for (const socket of sockets) {
				socket.destroy();
			}
			relay.close();
			await once(relay, "close");
		},
	};
}

describe("streams of requests", () => {
	it("are sent as they are written, and end with the call", async () => {
		await using connection = await open((stream) => {
			stream.respond(head, { waitForTrailers: true });
			stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
			stream.on("data", (chunk: Buffer) => stream.write(framed({ number: chunk.length })));
			stream.on("end", () => stream.end());
		});
		const next = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
		async function* requests() {
			for (const { promise } of next) {
				yield { text: "hello" };
				await promise;
			}
		}
		const sizes: number[] = [];
		for await (const { number } of connection.client.bidi(requests())) {
			sizes.push(number);
			next[sizes.length - 1]?.resolve();
		}
		expect(sizes).toEqual([12, 12]);
	});

	it("are left when the server ends the call before them", async () => {
		await using connection = await open((stream) => send(stream, framed({ text: "enough" })));
		const left = Promise.withResolvers<void>();
		async function* endless() {
			try {
				for (;;) {
					yield { text: "more" };
					await new Promise((resolve) => setTimeout(resolve, 1));
				}
			} finally {
				left.resolve();
			}
		}
		expect((await connection.client.clientStream(endless())).text).toBe("enough");
		await left.promise;
	});

	it("fail the call with their error", async () => {
		const reset = Promise.withResolvers<number | undefined>();
		await using connection = await open((stream) => {
			stream.once("close", () => reset.resolve(stream.rstCode));
		});
		async function* failing() {
			yield { text: "one" };
			throw new ConnectError("no more", Code.DataLoss);
		}
		expect(await codeOf(connection.client.clientStream(failing()))).toBe("DataLoss");
		expect(await reset.promise).toBe(constants.NGHTTP2_CANCEL);
	});
});
