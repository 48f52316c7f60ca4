import { Buffer } from "node:buffer";
import type { ServerHttp2Stream } from "node:http2";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { FakeClock } from "@plinth/runtime/testing";
import { createCancelingClient } from "@plinth/transport";
import { expect, it } from "vitest";
import { ProbeService } from "../testdata/src/gen/probe_pb.ts";
import type { PlinthTransportOptions } from "./options.ts";
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
async function connect(respond: Respond, options: Omit<PlinthTransportOptions, "baseUrl"> = {}) {
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

it.each([
	["cannot be decoded", withPrefix(Buffer.from([0xff])), /^Internal: parse binary/],
	["is compressed", withPrefix(new Uint8Array(), 1), /^Internal: .*compressed/],
	["is too large", withPrefix(Buffer.alloc(200)), /^ResourceExhausted: message size 200/],
])("fails a stream with a message that %s, also after its status", async (_, bytes, expected) => {
	const closed = Promise.withResolvers<void>();
	await using connection = await connect(
		(stream) => {
			stream.once("close", closed.resolve);
			send(stream, Buffer.concat([framed({ text: "one" }), bytes]));
		},
		{ readMaxBytes: 100 },
	);
	const reader = connection.client.serverStream({})[Symbol.asyncIterator]();
	expect(await reader.next()).toMatchObject({ value: { text: "one" } });
	await closed.promise;
	await connection.client.unary({}).catch(() => {});
	expect(await errorOf(reader.next())).toMatch(expected);
	expect(await reader.next()).toMatchObject({ done: true });
});

it("releases a stream that is left with unread messages after the server has ended it", async () => {
	const closed = Promise.withResolvers<void>();
	const clock = new FakeClock();
	await using connection = await connect((stream) => void sendInParts(stream, closed.resolve), {
		clock,
		idleConnectionTimeoutMs: 60_000,
	});
	const client = createCancelingClient(ProbeService, connection.transport);
	const reader = client.serverStream({})[Symbol.asyncIterator]();
	await reader.next();
	await closed.promise;
	await errorOf(client.unary({}));
	await reader.return?.();
	await expect
		.poll(async () => {
			await clock.advanceAsync(60_000);
			return connection.server.sessions[0]?.closed;
		})
		.toBe(true);
});

/** More chunks than a reader of one message takes from the stream. */
async function sendInParts(stream: ServerHttp2Stream, closed: () => void): Promise<void> {
	stream.once("close", closed);
	stream.respond(head, { waitForTrailers: true });
	stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
	for (let part = 0; part < 3; part++) {
		const bytes = Buffer.concat([framed({ text: "one" }), framed({ text: "two" })]);
		await new Promise((resolve) => stream.write(bytes, resolve));
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
	stream.end();
}

it("fails a call that still sends when the server has ended it without a status", async () => {
	await using connection = await connect((stream) => {
		stream.respond(head);
		stream.end(framed({ text: "one" }));
	});
	const waiting = Promise.withResolvers<void>();
	const left = Promise.withResolvers<void>();
	async function* messages() {
		try {
			yield {};
			await waiting.promise;
		} finally {
			left.resolve();
		}
	}
	const reader = connection.client.bidi(messages())[Symbol.asyncIterator]();
	expect(await reader.next()).toMatchObject({ value: { text: "one" } });
	expect(await errorOf(Promise.resolve(reader.next()))).toBe(
		"Internal: protocol error: missing status",
	);
	waiting.resolve();
	await left.promise;
});

it("registers no more listeners the longer it sends", async () => {
	const received = Promise.withResolvers<void>();
	let bytes = 0;
	const total = 30 * 100_000;
	await using connection = await connect((stream) => {
		stream.on("data", (chunk: Buffer) => {
			bytes += chunk.length;
			if (bytes >= total) {
				received.resolve();
			}
		});
		stream.once("end", () => send(stream, framed({ text: "all" })));
	});
	const warnings: Error[] = [];
	const onWarning = (warning: Error) => warnings.push(warning);
	process.on("warning", onWarning);
	async function* messages() {
		for (let message = 0; message < 30; message++) {
			yield { text: "x".repeat(100_000) };
		}
	}
	expect((await connection.client.clientStream(messages())).text).toBe("all");
	await received.promise;
	process.off("warning", onWarning);
	expect(warnings).toEqual([]);
});

it("leaves the messages of a call if one of them cannot be sent", async () => {
	await using connection = await connect(() => {}, { writeMaxBytes: 100 });
	let hasLeft = false;
	async function* messages() {
		try {
			yield {};
			yield { text: "x".repeat(200) };
		} finally {
			hasLeft = true;
		}
	}
	expect(await errorOf(connection.client.clientStream(messages()))).toMatch(/^ResourceExhausted/);
	await expect.poll(() => hasLeft).toBe(true);
});

it("settles the call of an interceptor whose caller leaves before there is a response", async () => {
	const called = Promise.withResolvers<void>();
	const settled = Promise.withResolvers<string>();
	const interceptor: Interceptor = (next) => async (request) => {
		const response = next(request);
		settled.resolve(errorOf(Promise.resolve(response)));
		return response;
	};
	await using connection = await connect(() => called.resolve(), { interceptors: [interceptor] });
	const client = createCancelingClient(ProbeService, connection.transport);
	const reader = client.serverStream({})[Symbol.asyncIterator]();
	const read = reader.next();
	await called.promise;
	await reader.return?.();
	expect(await read).toMatchObject({ done: true });
	expect(await settled.promise).toMatch(/^Canceled/);
});

it("ends the calls of interceptors that fail after their response has begun", async () => {
	const closed = Promise.withResolvers<void>();
	const interceptor: Interceptor = (next) => async (request) => {
		await next(request);
		throw new ConnectError("rejected", Code.FailedPrecondition);
	};
	await using connection = await connect(
		(stream) => {
			stream.once("close", closed.resolve);
			stream.respond(head);
			stream.write(framed({ text: "one" }));
		},
		{ interceptors: [interceptor] },
	);
	const reader = connection.client.serverStream({})[Symbol.asyncIterator]();
	expect(await errorOf(Promise.resolve(reader.next()))).toBe("FailedPrecondition: rejected");
	await closed.promise;
});
