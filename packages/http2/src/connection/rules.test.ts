import { describe, expect, it } from "vitest";
import { errorCode } from "../error-code.ts";
import { flag, frameType, setting } from "../frames/frame.ts";
import { frame, literals, requestFields, settingsFrame, uint32 } from "../frames.fixture.ts";
import type { Fields } from "../http2.ts";
import { RawClient, settle } from "../raw-client.fixture.ts";

const { data, headers, priority, rstStream, settings, pushPromise, ping, goaway } = frameType;
const { windowUpdate, continuation } = frameType;
const open = flag.endHeaders;
const ended = flag.endHeaders | flag.endStream;
const block = literals(...requestFields);
const zeros = (length: number) => Buffer.alloc(length);

/** The first request is open, the second is half-closed (remote), the third was reset by the client. */
async function withStreams(): Promise<RawClient> {
	const client = new RawClient();
	await client.send(
		frame(headers, open, 1, block),
		frame(headers, ended, 3, block),
		frame(headers, open, 5, block),
		frame(rstStream, 0, 5, uint32(errorCode.cancel)),
	);
	return client;
}

describe("errors of the connection", () => {
	it.each<[string, keyof typeof errorCode, Buffer]>([
		["DATA of the connection", "protocolError", frame(data, 0, 0, zeros(1))],
		["DATA of an idle stream", "protocolError", frame(data, 0, 9, zeros(1))],
		["DATA of a stream of the server", "protocolError", frame(data, 0, 2, zeros(1))],
		["DATA after RST_STREAM", "streamClosed", frame(data, 0, 5, zeros(1))],
		["padding as long as DATA", "protocolError", frame(data, flag.padded, 1, Buffer.from([1]))],
		["padded DATA without a length", "frameSizeError", frame(data, flag.padded, 1)],
		["a frame above the limit", "frameSizeError", frame(data, 0, 1, zeros(0), 16_385)],
		["HEADERS of the connection", "protocolError", frame(headers, ended, 0, block)],
		["HEADERS of an even stream", "protocolError", frame(headers, ended, 8, block)],
		[
			"HEADERS of a stream that was skipped",
			"protocolError",
			Buffer.concat([frame(headers, ended, 11, block), frame(headers, ended, 7, block)]),
		],
		["HEADERS after RST_STREAM", "streamClosed", frame(headers, ended, 5, block)],
		[
			"HEADERS without room for the priority",
			"frameSizeError",
			frame(headers, ended | flag.priority, 7, zeros(4)),
		],
		[
			"padding beyond HEADERS",
			"protocolError",
			frame(headers, ended | flag.padded, 7, Buffer.from([9, 1])),
		],
		[
			"a header block that is no HPACK",
			"compressionError",
			frame(headers, ended, 7, Buffer.from([0x80])),
		],
		[
			"a header block of a closed stream that is no HPACK",
			"compressionError",
			frame(headers, ended, 5, Buffer.from([0x80])),
		],
		[
			"a frame within a header block",
			"protocolError",
			Buffer.concat([frame(headers, flag.endStream, 7, block), frame(ping, 0, 0, zeros(8))]),
		],
		[
			"an unknown frame within a header block",
			"protocolError",
			Buffer.concat([frame(headers, flag.endStream, 7, block), frame(0xaa, 0, 7)]),
		],
		[
			"CONTINUATION of another stream",
			"protocolError",
			Buffer.concat([
				frame(headers, flag.endStream, 7, block),
				frame(continuation, flag.endHeaders, 9),
			]),
		],
		["CONTINUATION without HEADERS", "protocolError", frame(continuation, flag.endHeaders, 1)],
		["PRIORITY of the connection", "protocolError", frame(priority, 0, 0, zeros(5))],
		["RST_STREAM of the connection", "protocolError", frame(rstStream, 0, 0, zeros(4))],
		["RST_STREAM of an idle stream", "protocolError", frame(rstStream, 0, 9, zeros(4))],
		["RST_STREAM of a wrong size", "frameSizeError", frame(rstStream, 0, 1, zeros(3))],
		["SETTINGS of a stream", "protocolError", frame(settings, 0, 1)],
		["SETTINGS of a wrong size", "frameSizeError", frame(settings, 0, 0, zeros(5))],
		[
			"a SETTINGS acknowledgement with content",
			"frameSizeError",
			frame(settings, flag.ack, 0, zeros(6)),
		],
		[
			"an acknowledgement of nothing",
			"protocolError",
			Buffer.concat([frame(settings, flag.ack, 0), frame(settings, flag.ack, 0)]),
		],
		["ENABLE_PUSH of 2", "protocolError", settingsFrame([setting.enablePush, 2])],
		[
			"NO_RFC7540_PRIORITIES of 2",
			"protocolError",
			settingsFrame([setting.noRfc7540Priorities, 2]),
		],
		[
			"an initial window of 2^31",
			"flowControlError",
			settingsFrame([setting.initialWindowSize, 2 ** 31]),
		],
		[
			"frames of less than 16384 bytes",
			"protocolError",
			settingsFrame([setting.maxFrameSize, 16_383]),
		],
		["frames of 2^24 bytes", "protocolError", settingsFrame([setting.maxFrameSize, 2 ** 24])],
		[
			"an initial window that is too large for a stream",
			"flowControlError",
			Buffer.concat([
				frame(windowUpdate, 0, 1, uint32(1)),
				settingsFrame([setting.initialWindowSize, 2 ** 31 - 1]),
			]),
		],
		[
			"PUSH_PROMISE",
			"protocolError",
			frame(pushPromise, flag.endHeaders, 1, Buffer.concat([uint32(2), block])),
		],
		["PING of a stream", "protocolError", frame(ping, 0, 1, zeros(8))],
		["PING of a wrong size", "frameSizeError", frame(ping, 0, 0, zeros(7))],
		["GOAWAY of a stream", "protocolError", frame(goaway, 0, 1, zeros(8))],
		["GOAWAY of a wrong size", "frameSizeError", frame(goaway, 0, 0, zeros(7))],
		["credit of 0 for the connection", "protocolError", frame(windowUpdate, 0, 0, uint32(0))],
		[
			"too much credit for the connection",
			"flowControlError",
			frame(windowUpdate, 0, 0, uint32(2 ** 31 - 1)),
		],
		["credit for an idle stream", "protocolError", frame(windowUpdate, 0, 9, uint32(1))],
		["WINDOW_UPDATE of a wrong size", "frameSizeError", frame(windowUpdate, 0, 1, zeros(5))],
	])("%s", async (_, code, bytes) => {
		const client = await withStreams();
		await client.send(bytes);
		expect(client.goawayCode).toBe(errorCode[code]);
		expect(client.isEnded).toBe(true);
		expect(client.requests[0]?.events.at(-1)).toBe(`reset ${errorCode[code]} connection`);
		client.socket.end();
		expect((await client.connection.closed).code).toBe(errorCode[code]);
	});

	it("a wrong preface", async () => {
		const client = new RawClient({ begins: false });
		await client.send(Buffer.from("PRI * HTTP/2.0\r\n\r\nSX"));
		expect(client.goawayCode).toBe(errorCode.protocolError);
	});

	it("another frame than SETTINGS first", async () => {
		const client = new RawClient({ begins: false });
		await client.send(Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(ping, 0, 0, zeros(8)));
		expect(client.goawayCode).toBe(errorCode.protocolError);
	});

	it("a preface that does not come in time", async () => {
		const client = new RawClient({ begins: false });
		await client.send(Buffer.from("PRI * HTTP/2.0"));
		client.clock.advance(10_000);
		await settle();
		expect(client.goawayCode).toBe(errorCode.protocolError);
	});
});

describe("errors of a stream", () => {
	it.each<[string, keyof typeof errorCode, number, Buffer]>([
		["DATA after END_STREAM", "streamClosed", 3, frame(data, 0, 3, zeros(1))],
		["HEADERS after END_STREAM", "streamClosed", 3, frame(headers, ended, 3, block)],
		[
			"trailers without END_STREAM",
			"protocolError",
			1,
			frame(headers, open, 1, literals("a", "b")),
		],
		[
			"trailers with a pseudo-header field",
			"protocolError",
			1,
			frame(headers, ended, 1, literals(":path", "/")),
		],
		[
			"trailers of the connection",
			"protocolError",
			1,
			frame(headers, ended, 1, literals("connection", "x")),
		],
		["credit of 0", "protocolError", 1, frame(windowUpdate, 0, 1, uint32(0))],
		["too much credit", "flowControlError", 1, frame(windowUpdate, 0, 1, uint32(2 ** 31 - 1))],
		["PRIORITY of a wrong size", "frameSizeError", 1, frame(priority, 0, 1, zeros(4))],
	])("%s", async (_, code, id, bytes) => {
		const client = await withStreams();
		await client.send(bytes);
		expect(client.resetCode(id)).toBe(errorCode[code]);
		expect(client.goawayCode).toBeUndefined();
		const recorded = client.requests.find(({ stream }) => stream.id === id);
		expect(recorded?.events.at(-1)).toBe(`reset ${errorCode[code]} local`);
		await client.send(client.headers(21));
		expect(client.request.events).toEqual(["end"]);
	});

	const [method, scheme, path] = [
		requestFields.slice(0, 2),
		requestFields.slice(2, 4),
		requestFields.slice(4, 6),
	];
	it.each<[string, Fields]>([
		["no method", [...scheme, ...path]],
		["no scheme", [...method, ...path]],
		["no path", [...method, ...scheme]],
		["an empty path", [...method, ...scheme, ":path", ""]],
		["a path without a slash", [...method, ...scheme, ":path", "echo"]],
		["a path with a space", [...method, ...scheme, ":path", "/a b"]],
		["a path of * for another method than OPTIONS", [...method, ...scheme, ":path", "*"]],
		["two methods", [...requestFields, ":method", "GET"]],
		["two paths", [...requestFields, ":path", "/"]],
		["two schemes", [...requestFields, ":scheme", "http"]],
		["two authorities", [...requestFields, ":authority", "localhost"]],
		["an unknown pseudo-header field", [...requestFields, ":protocol", "websocket"]],
		["a pseudo-header field of responses", [...requestFields, ":status", "200"]],
		["a pseudo-header field after others", [...method, ...scheme, "a", "b", ...path]],
		["CONNECT with a path", [":method", "CONNECT", ":authority", "a:1", ":path", "/"]],
		["CONNECT without an authority", [":method", "CONNECT"]],
		["an authority with a user", [...method, ...scheme, ...path, ":authority", "me@localhost"]],
		["a name with an uppercase letter", [...requestFields, "Accept", "b"]],
		["an empty name", [...requestFields, "", "b"]],
		["a name with a space", [...requestFields, "a b", "c"]],
		["a name with a colon", [...requestFields, "a:b", "c"]],
		["a value with a line feed", [...requestFields, "a", "b\nc"]],
		["a value with a carriage return", [...requestFields, "a", "b\rc"]],
		["a value with a control character", [...requestFields, "a", "b\x1bc"]],
		["a value with NUL", [...requestFields, "a", "b\0c"]],
		["a value that begins with a space", [...requestFields, "a", " b"]],
		["a value that ends with a tab", [...requestFields, "a", "b\t"]],
		["connection", [...requestFields, "connection", "close"]],
		["keep-alive", [...requestFields, "keep-alive", "1"]],
		["proxy-connection", [...requestFields, "proxy-connection", "close"]],
		["transfer-encoding", [...requestFields, "transfer-encoding", "chunked"]],
		["upgrade", [...requestFields, "upgrade", "h2c"]],
		["te of another value than trailers", [...requestFields, "te", "gzip"]],
		["a host that differs", [...requestFields, "host", "elsewhere"]],
		["two hosts", [...method, ...scheme, ...path, "host", "a", "host", "a"]],
		["a length that is no number", [...requestFields, "content-length", "+1"]],
		["two lengths", [...requestFields, "content-length", "0", "content-length", "0"]],
		["a length without a body", [...requestFields, "content-length", "1"]],
	])("a request with %s", async (_, fields) => {
		const client = new RawClient();
		await client.send(frame(headers, ended, 1, literals(...fields)));
		expect(client.resetCode(1)).toBe(errorCode.protocolError);
		expect(client.requests).toEqual([]);
		await client.send(client.headers(3));
		expect(client.requests).toHaveLength(1);
	});

	it.each<[string, number, readonly Buffer[]]>([
		["more than its length", 2, [frame(data, 0, 1, zeros(3))]],
		["less than its length", 2, [frame(data, flag.endStream, 1, zeros(1))]],
		[
			"less than its length, before trailers",
			2,
			[frame(data, 0, 1, zeros(1)), frame(headers, ended, 1, literals("a", "b"))],
		],
	])("a body of %s", async (_, length, frames) => {
		const client = new RawClient();
		await client.send(client.headers(1, false, "content-length", String(length)), ...frames);
		expect(client.resetCode(1)).toBe(errorCode.protocolError);
		expect(client.request.events.at(-1)).toBe(`reset ${errorCode.protocolError} local`);
	});
});

describe("what is valid", () => {
	it("a request whose frames come byte by byte", async () => {
		const client = new RawClient({ begins: false });
		const bytes = Buffer.concat([
			Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
			settingsFrame(),
			client.headers(1, false, "content-length", "5"),
			frame(data, flag.endStream, 1, Buffer.from("hello")),
		]);
		for (const byte of bytes) {
			client.socket.write(Buffer.from([byte]));
		}
		await settle();
		expect(client.request.body.toString()).toBe("hello");
		expect(client.request.events).toEqual(["data 5", "end"]);
	});

	it("padding, priorities, and header blocks in pieces", async () => {
		const client = new RawClient();
		const padded = Buffer.concat([Buffer.from([3]), zeros(5), block.subarray(0, 7), zeros(3)]);
		await client.send(
			frame(headers, flag.padded | flag.priority | flag.endStream, 1, padded),
			frame(continuation, 0, 1, block.subarray(7, 20)),
			frame(continuation, 0, 1),
			frame(continuation, flag.endHeaders, 1, block.subarray(20)),
			frame(headers, open, 3, block),
			frame(data, flag.padded, 3, Buffer.concat([Buffer.from([2]), Buffer.from("hi"), zeros(2)])),
			frame(data, flag.padded | flag.endStream, 3, Buffer.from([0])),
			frame(priority, 0, 99, zeros(5)),
			frame(0xaa, 0xff, 1234, zeros(10)),
		);
		expect(client.requests[0]?.head).toMatchObject({
			method: "POST",
			scheme: "http",
			path: "/echo",
			authority: "localhost",
		});
		expect(client.requests[1]?.events).toEqual(["data 2", "end"]);
		expect(client.goawayCode).toBeUndefined();
	});

	it("trailers", async () => {
		const client = new RawClient();
		await client.send(client.headers(1, false), frame(headers, ended, 1, literals("a", "b")));
		expect(client.request.trailers).toEqual(["a", "b"]);
	});

	it("OPTIONS of *, CONNECT, te of trailers, and a host instead of an authority", async () => {
		const client = new RawClient();
		await client.send(
			frame(
				headers,
				ended,
				1,
				literals(":method", "OPTIONS", ":scheme", "http", ":path", "*", "host", "a"),
			),
			frame(headers, open, 3, literals(":method", "CONNECT", ":authority", "a:1")),
			client.headers(5, true, "te", "trailers", "host", "LOCALHOST"),
		);
		expect(client.requests.map(({ head }) => [head.path, head.authority])).toEqual([
			["*", "a"],
			["", "a:1"],
			["/echo", "localhost"],
		]);
	});

	it("PING and SETTINGS, which are acknowledged in order", async () => {
		const client = new RawClient();
		await client.send(frame(ping, 0, 0, Buffer.from("abcdefgh")), settingsFrame([0x7777, 1]));
		expect(client.of(ping).map(({ flags, payload }) => [flags, payload.toString()])).toEqual([
			[flag.ack, "abcdefgh"],
		]);
		expect(client.of(settings).map(({ flags }) => flags)).toEqual([0, flag.ack, flag.ack]);
	});

	it("frames that were on their way when the server reset their stream", async () => {
		const client = new RawClient();
		await client.send(client.headers(1, false));
		client.request.stream.reset(errorCode.cancel);
		await client.send(
			frame(data, 0, 1, zeros(100)),
			frame(windowUpdate, 0, 1, uint32(5)),
			frame(rstStream, 0, 1, uint32(8)),
			frame(headers, ended, 1, literals("a", "b")),
		);
		expect(client.goawayCode).toBeUndefined();
		expect(client.request.events).toEqual(["reset 8 local"]);
	});

	it("frames for a response that has ended", async () => {
		const client = new RawClient();
		await client.send(client.headers(1));
		client.request.stream.respond(200, [], true);
		await client.send(frame(windowUpdate, 0, 1, uint32(5)), frame(rstStream, 0, 1, uint32(8)));
		expect(client.goawayCode).toBeUndefined();
		expect(client.request.events).toEqual(["end", "finish"]);
	});
});
