import { Buffer } from "node:buffer";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { constants, createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { createServer, type Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { reachableBytes } from "@plinth/test-support";
import { expect, it } from "vitest";
import { ProbeService } from "../testdata/src/gen/probe_pb.ts";
import {
	framed,
	head,
	openRawServer,
	type Respond,
	send,
	withPrefix,
} from "./raw-server.fixture.ts";
import { createPlinthTransport } from "./transport.ts";

/** A server that responds like this, and a client of it. */
async function connect(respond: Respond, options: { readonly readMaxBytes?: number } = {}) {
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

async function errorOf(promise: Promise<unknown>): Promise<string> {
	try {
		await promise;
	} catch (thrown) {
		const error = ConnectError.from(thrown);
		return `${Code[error.code]}: ${error.rawMessage}`;
	}
	return "no error";
}

async function drain(messages: AsyncIterable<{ readonly text: string }>, into: string[] = []) {
	for await (const { text } of messages) {
		into.push(text);
	}
	return into;
}

it("ends a call to a server that never responds at its deadline, with CANCEL", async () => {
	const reset = Promise.withResolvers<number | undefined>();
	let calls = 0;
	await using connection = await connect((stream) => {
		calls += 1;
		if (calls === 1) {
			send(stream, framed({ text: "fine" }));
			return;
		}
		stream.once("close", () => reset.resolve(stream.rstCode));
	});
	// A call whose deadline passes before there is a connection never reaches the server.
	await connection.client.unary({});
	expect(await errorOf(connection.client.unary({}, { timeoutMs: 50 }))).toBe(
		"DeadlineExceeded: the operation timed out",
	);
	expect(await reset.promise).toBe(constants.NGHTTP2_CANCEL);
});

it("refuses a message of 4 GiB before it has arrived", async () => {
	await using connection = await connect(
		(stream) => {
			stream.respond(head);
			stream.write(withPrefix(Buffer.from("the beginning"), 0, 0xffff_ffff));
		},
		{ readMaxBytes: 1_000_000 },
	);
	const expected =
		"ResourceExhausted: message size 4294967295 is larger than configured readMaxBytes 1000000";
	expect(await errorOf(connection.client.unary({}))).toBe(expected);
	expect(await errorOf(drain(connection.client.serverStream({})))).toBe(expected);
});

it("fails a call whose headers are larger than HTTP/2 allows, and goes on", async () => {
	let calls = 0;
	await using connection = await connect((stream) => {
		calls += 1;
		if (calls === 1) {
			stream.respond({ ...head, ...Object.fromEntries(manyHeaders(80)) });
			stream.end();
		} else {
			send(stream, framed({ text: "fine" }));
		}
	});
	expect(await errorOf(connection.client.unary({}))).toMatch(/^(Internal|Unavailable|Resource)/);
	expect((await connection.client.unary({})).text).toBe("fine");
});

function* manyHeaders(count: number): Generator<[string, string]> {
	for (let header = 0; header < count; header++) {
		yield [`x-header-${header}`, "x".repeat(1000)];
	}
}

it.each([
	["PROTOCOL_ERROR", "Internal"],
	["REFUSED_STREAM", "Unavailable"],
	["CANCEL", "Canceled"],
	["ENHANCE_YOUR_CALM", "ResourceExhausted"],
	["INADEQUATE_SECURITY", "PermissionDenied"],
] as const)("delivers messages before a reset with %s, which is %s", async (name, code) => {
	await using connection = await connect((stream) => {
		// Without trailers, a server of Node ends the stream before it resets it.
		stream.respond(head, { waitForTrailers: true });
		stream.write(framed({ text: "first" }), () =>
			setTimeout(() => stream.close(constants[`NGHTTP2_${name}`]), 20),
		);
	});
	const texts: string[] = [];
	expect(await errorOf(drain(connection.client.serverStream({}), texts))).toMatch(
		new RegExp(`^${code}: http/2 stream closed with error code ${name}`),
	);
	expect(texts).toEqual(["first"]);
});

it("reads messages that are cut anywhere", async () => {
	const bytes = Buffer.concat([framed({ text: "one" }), framed({}), framed({ text: "three" })]);
	for (let cut = 0; cut <= bytes.length; cut++) {
		await using connection = await connect((stream) => void sendSlowly(stream, bytes, cut));
		expect(await drain(connection.client.serverStream({}))).toEqual(["one", "", "three"]);
	}
});

async function sendSlowly(stream: ServerHttp2Stream, bytes: Buffer, cut: number): Promise<void> {
	stream.respond(head, { waitForTrailers: true });
	stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
	await new Promise((resolve) => stream.write(bytes.subarray(0, cut), resolve));
	await new Promise((resolve) => setImmediate(resolve));
	stream.end(bytes.subarray(cut));
}

it("reads no further ahead than HTTP/2's windows while nobody reads", async () => {
	const message = framed({ data: Buffer.alloc(10_000) });
	let sent = 0;
	await using connection = await connect((stream) => {
		stream.respond(head);
		const write = () => {
			while (sent < 10_000 && stream.write(message)) {
				sent += 1;
			}
		};
		stream.on("drain", write);
		write();
	});
	const reader = connection.client.serverStream({})[Symbol.asyncIterator]();
	await reader.next();
	let before = -1;
	while (before !== sent) {
		before = sent;
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
	expect(sent * message.length).toBeLessThan(1_000_000);
});

it("keeps hardly more memory than the bytes that nobody reads, however they were sent", async () => {
	const many = 200;
	const calls: ServerHttp2Stream[] = [];
	await using connection = await connect((stream) => {
		stream.respond(head);
		calls.push(stream);
	});
	const { client } = connection;
	const before = reachableBytes();
	const unread = client.serverStream({})[Symbol.asyncIterator]();
	// It waits for a message that does not become complete.
	const waiting = errorOf(unread.next());
	const read = drain(client.serverStream({})).catch(() => {});
	await expect.poll(() => calls.length).toBe(2);
	calls[0]?.write(withPrefix(Buffer.alloc(0), 0, 2 * many));
	const large = framed({ data: Buffer.alloc(200_000) });
	for (let count = 0; count < many; count++) {
		calls[0]?.write(Buffer.alloc(1));
		await new Promise((resolve) => calls[1]?.write(large, resolve));
	}
	calls[1]?.close(constants.NGHTTP2_CANCEL);
	await read;
	await expect.poll(() => reachableBytes() - before).toBeLessThan(2_000_000);
	connection.transport.close();
	expect(await waiting).toBe("Canceled: the transport was closed");
});

it("makes calls on another session after a GOAWAY, and lets the open ones end", async () => {
	const finish = Promise.withResolvers<void>();
	await using connection = await connect((stream) => {
		stream.respond(head, { waitForTrailers: true });
		stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
		stream.write(framed({ text: "first" }));
		void finish.promise.then(() => stream.end(framed({ text: "last" })));
	});
	const { client, server } = connection;
	const reader = client.serverStream({})[Symbol.asyncIterator]();
	await reader.next();
	server.sessions[0]?.goaway(constants.NGHTTP2_NO_ERROR);
	await expect
		.poll(async () => {
			const other = client.serverStream({})[Symbol.asyncIterator]();
			await other.next();
			return server.sessions.length;
		})
		.toBe(2);
	finish.resolve();
	expect(await reader.next()).toMatchObject({ value: { text: "last" } });
	expect(await reader.next()).toMatchObject({ done: true });
});

it("fails calls whose connection is lost with Unavailable, and connects again", async () => {
	const calls: ServerHttp2Stream[] = [];
	await using connection = await connect((stream) => {
		calls.push(stream);
		if (calls.length > 1) {
			send(stream, framed({ text: "again" }));
		}
	});
	const lost = errorOf(connection.client.unary({}));
	await expect.poll(() => calls.length).toBe(1);
	connection.server.sessions[0]?.destroy();
	expect(await lost).toMatch(/^Unavailable: http:\/\/127.0.0.1:\d+ closed the connection/);
	expect((await connection.client.unary({})).text).toBe("again");
});

it("names a server that does not speak HTTP/2", async () => {
	const refusal = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n";
	const { error } = await callTo(
		"http",
		createServer((socket) => socket.on("error", () => {}).end(refusal)),
	);
	expect(error).toMatch(/^Unavailable: .*speak HTTP\/2/);
});

it.each([
	["HTTP/2", () => createHttp2Server()],
	["HTTP/1.1", () => createHttpServer()],
	[
		"another protocol",
		() => createServer((socket) => socket.on("error", () => {}).write("220\r\n")),
	],
] as const)("says that a server of %s does not speak TLS", async (_name, create) => {
	const { port, error } = await callTo("https", create());
	expect(error).toBe(
		`Unavailable: https://127.0.0.1:${port} does not speak TLS: is it http://127.0.0.1:${port}?`,
	);
});

it("says that a server speaks TLS that responds with an alert of it", async () => {
	const alert = Buffer.from([0x15, 3, 1, 0, 2, 2, 70]);
	for (const sent of [alert, Buffer.concat([alert, alert])]) {
		const { port, error } = await callTo(
			"http",
			createServer((socket) => socket.on("error", () => {}).end(sent)),
		);
		expect(error).toBe(
			`Unavailable: http://127.0.0.1:${port} speaks TLS: is it https://127.0.0.1:${port}?`,
		);
	}
});

it("asks whether a server speaks TLS that closes the connection without a response", async () => {
	const { port, error } = await callTo("http", createTlsServer());
	expect(error).toBe(
		`Unavailable: http://127.0.0.1:${port} closed the connection without a response: is it https://127.0.0.1:${port}?`,
	);
});

it("says what is wrong with TLS in plain words", async () => {
	const failure = Buffer.from([0x15, 3, 3, 0, 2, 2, 40]);
	const { port, error } = await callTo(
		"https",
		createServer((socket) => socket.on("error", () => {}).write(failure)),
	);
	expect(error).toBe(
		`Unavailable: https://127.0.0.1:${port}: TLS failed: ssl/tls alert handshake failure`,
	);
});

/** The error of a call to a server on any port. */
async function callTo(scheme: "http" | "https", server: Server) {
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	const port: unknown = Object(server.address()).port;
	const transport = createPlinthTransport({ baseUrl: `${scheme}://127.0.0.1:${port}` });
	try {
		return { port, error: await errorOf(createClient(ProbeService, transport).unary({})) };
	} finally {
		transport.close();
		server.close();
	}
}

it("names an address where no server is", async () => {
	const server = await openRawServer(() => {});
	await server[Symbol.asyncDispose]();
	const transport = createPlinthTransport({ baseUrl: server.baseUrl });
	const client = createClient(ProbeService, transport);
	for (let attempt = 0; attempt < 3; attempt++) {
		expect(await errorOf(client.unary({}))).toMatch(/^Unavailable: .*ECONNREFUSED/);
	}
	transport.close();
});

it("fails open and later calls when it is closed", async () => {
	const called = Promise.withResolvers<void>();
	await using connection = await connect(() => called.resolve());
	const open = errorOf(connection.client.unary({}));
	await called.promise;
	connection.transport.close(new ConnectError("stopping", Code.Unavailable));
	expect(await open).toBe("Unavailable: stopping");
	expect(await errorOf(connection.client.unary({}))).toBe("Unavailable: stopping");
});
