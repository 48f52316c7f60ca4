import { describe, expect, it } from "vitest";
import { errorCode } from "../error-code.ts";
import { clientPreface, flag, frameType, setting } from "../frames/frame.ts";
import { frame, literals, settingsFrame, uint32 } from "../frames.fixture.ts";
import { settle } from "../raw-client.fixture.ts";
import { begun, headers, RawServer, requestHead } from "./raw-server.fixture.ts";

const { data, goaway, ping, pushPromise, rstStream, windowUpdate } = frameType;
const ok = [":status", "200"];
const { endStream, endHeaders } = flag;

describe("a client", () => {
	it("begins with its preface and its settings, which forbid pushes", async () => {
		const server = new RawServer();
		const chunks: Buffer[] = [];
		server.socket.on("data", (chunk: Buffer) => chunks.push(chunk));
		await settle();
		expect(Buffer.concat(chunks).subarray(0, clientPreface.length)).toEqual(clientPreface);
		const [{ payload } = { payload: Buffer.alloc(0) }] = server.frames;
		const settings = new Map<number, number>();
		for (let at = 0; at < payload.length; at += 6) {
			settings.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
		}
		expect(settings.get(setting.enablePush)).toBe(0);
		expect(server.reports).toEqual([]);
		await server.send(settingsFrame());
		expect(server.reports).toEqual(["settings"]);
	});

	it("sends requests, and receives responses: head, data, trailers", async () => {
		const server = await begun();
		const response = server.request({ ends: false });
		response.stream?.write(Buffer.from("question"));
		response.stream?.end(Buffer.from("?"));
		await settle();
		const [head = frame(0, 0, 0)] = server.of(frameType.headers, 1);
		expect("payload" in head && server.decode(head)).toEqual(requestHead);
		expect(server.of(data, 1).map(({ payload }) => `${payload}`)).toEqual(["question", "?"]);
		expect(server.of(data, 1).map(({ flags }) => flags)).toEqual([0, endStream]);
		await server.send(
			headers(1, [...ok, "a", "b"]),
			frame(data, 0, 1, Buffer.from("answer")),
			headers(1, ["grpc-status", "0"], true),
		);
		expect(response.events).toEqual(["head 200 a b", "data 6", "end grpc-status 0", "finish"]);
		expect(server.connection.activeStreams).toBe(0);
	});

	it("drops informational responses", async () => {
		const server = await begun();
		const response = server.request();
		await server.send(headers(1, [":status", "103", "link", "x"]), headers(1, ok, true));
		expect(response.events).toEqual(["head 200", "end", "finish"]);
	});

	it("sends a request at once that is made before the server's settings arrive", async () => {
		const server = new RawServer();
		server.request();
		await settle();
		expect(server.of(frameType.headers)).toHaveLength(1);
	});

	it("returns credit for what is consumed, and not before", async () => {
		const server = await begun([], { streamWindowBytes: 65_535, connectionWindowBytes: 65_535 });
		const response = server.request({ consumes: false });
		await server.send(headers(1, ok), frame(data, 0, 1, Buffer.alloc(16_384)));
		await server.send(...[1, 2].map(() => frame(data, 0, 1, Buffer.alloc(16_384))));
		expect(server.of(windowUpdate)).toEqual([]);
		response.stream?.consume(3 * 16_384);
		await settle();
		expect(server.of(windowUpdate).map(({ id }) => id)).toEqual([1, 0]);
	});

	it("waits for the server's credit", async () => {
		const server = await begun([[setting.initialWindowSize, 5]]);
		const response = server.request({ ends: false });
		response.stream?.end(Buffer.from("12345678"));
		await settle();
		expect(server.of(data).map(({ payload }) => `${payload}`)).toEqual(["12345"]);
		expect(response.stream?.isLocalEnded).toBe(false);
		await server.send(frame(windowUpdate, 0, 1, uint32(100)));
		expect(server.of(data).map(({ payload }) => `${payload}`)).toEqual(["12345", "678"]);
		expect(response.stream?.isLocalEnded).toBe(true);
	});

	it("encodes a request that repeats once", async () => {
		const server = await begun();
		for (let times = 0; times < 4; times++) {
			server.request();
		}
		await settle();
		const blocks = server.of(frameType.headers).map(({ payload }) => payload.length);
		expect(blocks[3]).toBeLessThan(Number(blocks[0]));
		expect(server.of(frameType.headers).map((each) => server.decode(each))).toEqual(
			Array.from({ length: 4 }, () => requestHead),
		);
	});
});

describe("requests beyond the server's limit of streams", () => {
	it("wait, with their bodies, and are sent in order", async () => {
		const server = await begun([[setting.maxConcurrentStreams, 1]]);
		const [first, second, third] = [1, 2, 3].map((number) => {
			const response = server.request({ ends: false });
			response.stream?.end(Buffer.from(`${number}`));
			return response;
		});
		await settle();
		expect(server.of(frameType.headers).map(({ id }) => id)).toEqual([1]);
		expect(server.connection.activeStreams).toBe(3);
		expect(second?.stream?.id).toBe(0);
		await server.send(headers(1, ok, true));
		expect(server.of(data).map(({ id, payload }) => `${id} ${payload}`)).toEqual(["1 1", "3 2"]);
		expect(first?.events.at(-1)).toBe("finish");
		await server.send(frame(rstStream, 0, 3, uint32(errorCode.cancel)));
		expect(second?.events).toEqual([`reset ${errorCode.cancel} peer`]);
		expect(server.of(data).at(-1)?.payload.toString()).toBe("3");
		await server.send(headers(5, ok, true));
		expect(third?.events.at(-1)).toBe("finish");
	});

	it("go out when the server raises its limit", async () => {
		const server = await begun([[setting.maxConcurrentStreams, 0]]);
		server.request();
		server.request();
		await settle();
		expect(server.of(frameType.headers)).toEqual([]);
		await server.send(settingsFrame([setting.maxConcurrentStreams, 2]));
		expect(server.of(frameType.headers).map(({ id }) => id)).toEqual([1, 3]);
	});

	it("are none once its settings have arrived without a limit", async () => {
		const server = await begun();
		for (let request = 0; request < 150; request++) {
			server.request();
		}
		await settle();
		expect(server.of(frameType.headers)).toHaveLength(150);
	});

	it("get credit as the server counts it, if it has learned of a small window in the meantime", async () => {
		const windowBytes = 16_384;
		const server = new RawServer({ streamWindowBytes: windowBytes });
		const responses = Array.from({ length: 101 }, () => server.request());
		expect(responses.at(-1)?.stream?.id).toBe(0);
		await server.send(settingsFrame(), frame(frameType.settings, flag.ack, 0));
		const id = responses.at(-1)?.stream?.id ?? 0;
		expect(id).toBe(201);
		await server.send(headers(id, ok), frame(data, 0, id, Buffer.alloc(windowBytes)));
		expect(server.of(windowUpdate, id).map(({ payload }) => payload.readUInt32BE())).toEqual([
			windowBytes,
		]);
	});

	it("do not keep a connection that ends waiting after they are reset", async () => {
		const server = await begun([[setting.maxConcurrentStreams, 0]]);
		const response = server.request();
		const closed = server.connection.close();
		await settle();
		expect(server.isEnded).toBe(false);
		response.stream?.reset(errorCode.cancel);
		await settle();
		expect(server.isEnded).toBe(true);
		server.socket.end();
		expect((await closed).code).toBe(errorCode.noError);
	});

	it("are never sent if they are reset first", async () => {
		const server = await begun([[setting.maxConcurrentStreams, 0]]);
		const response = server.request({ ends: false });
		response.stream?.write(Buffer.alloc(100));
		response.stream?.reset(errorCode.cancel);
		response.stream?.write(Buffer.alloc(100));
		expect(response.events).toEqual([`reset ${errorCode.cancel} local`]);
		expect(server.connection.unsentBytes).toBe(0);
		await server.send(settingsFrame([setting.maxConcurrentStreams, 2]));
		expect(server.of(frameType.headers)).toEqual([]);
		expect(server.of(rstStream)).toEqual([]);
		expect(server.connection.activeStreams).toBe(0);
	});
});

describe("a response is refused with PROTOCOL_ERROR", () => {
	const short = frame(data, endStream, 1, Buffer.alloc(1));
	it.each([
		["data before its head", [frame(data, 0, 1, Buffer.alloc(1))]],
		["trailers before its head", [headers(1, ["grpc-status", "0"], true)]],
		["trailers that do not end it", [headers(1, ok), headers(1, ["grpc-status", "0"])]],
		["two heads", [headers(1, ok), headers(1, ok, true)]],
		["an informational head that ends it", [headers(1, [":status", "103"], true)]],
		["a switch of protocols", [headers(1, [":status", "101"])]],
		["a status that is none", [headers(1, [":status", "2000"])]],
		["a field with capital letters", [headers(1, [...ok, "A", "b"])]],
		["a connection-specific field", [headers(1, [...ok, "connection", "close"])]],
		["a pseudo-header field of requests", [headers(1, [...ok, ":path", "/"])]],
		["more data than announced", [headers(1, [...ok, "content-length", "0"]), short]],
		["less data than announced", [headers(1, [...ok, "content-length", "2"]), short]],
		["no data at all, though announced", [headers(1, [...ok, "content-length", "2"], true)]],
		["two lengths", [headers(1, [...ok, "content-length", "1", "content-length", "1"])]],
	])("that has %s", async (_, frames) => {
		const server = await begun();
		const response = server.request();
		const other = server.request();
		await server.send(...frames);
		expect(server.resetCode(1)).toBe(errorCode.protocolError);
		expect(response.events.at(-1)).toBe(`reset ${errorCode.protocolError} local`);
		await server.send(headers(3, ok, true));
		expect(other.events.at(-1)).toBe("finish");
	});

	it.each([
		["HEAD", "200"],
		["GET", "204"],
		["GET", "304"],
	])(
		"but not for the length of a body that %s with status %s does not have",
		async (method, status) => {
			const server = await begun();
			const fields = [":method", method, ...requestHead.slice(2)];
			const response = server.request({ fields });
			await server.send(headers(1, [":status", status, "content-length", "9"], true));
			expect(response.events.slice(1)).toEqual(["end", "finish"]);
		},
	);

	it("or with ENHANCE_YOUR_CALM, if its fields are too large", async () => {
		const server = await begun([], { maxHeaderListBytes: 1000 });
		const response = server.request();
		await server.send(headers(1, [...ok, "a", "b".repeat(1500)], true));
		expect(response.events).toEqual([`reset ${errorCode.enhanceYourCalm} local`]);
	});
});

describe("the connection ends with", () => {
	const oneField = literals("a", "b");
	it.each([
		[
			"a setting that enables pushes",
			settingsFrame([setting.enablePush, 1]),
			errorCode.protocolError,
		],
		["PUSH_PROMISE", frame(pushPromise, endHeaders, 1, uint32(2)), errorCode.protocolError],
		["a stream of the server", headers(2, ok), errorCode.protocolError],
		["a response without a request", headers(3, ok), errorCode.protocolError],
		["data without a request", frame(data, 0, 3), errorCode.protocolError],
		[
			"a block that is not HPACK",
			frame(frameType.headers, endHeaders, 1, Buffer.of(0xff)),
			errorCode.compressionError,
		],
		[
			"an interrupted block",
			Buffer.concat([frame(frameType.headers, 0, 1, oneField), frame(ping, 0, 0, Buffer.alloc(8))]),
			errorCode.protocolError,
		],
		[
			"more data than the window",
			Buffer.concat([headers(1, ok), ...[1, 2].map(() => frame(data, 0, 1, Buffer.alloc(16_000)))]),
			errorCode.flowControlError,
		],
		[
			"a frame that is too large",
			frame(data, 0, 1, Buffer.alloc(16_385)),
			errorCode.frameSizeError,
		],
	])("%s", async (_, bytes, code) => {
		const server = await begun([], { streamWindowBytes: 20_000, connectionWindowBytes: 65_535 });
		// The window of the connection can't be smaller: that of the stream is exceeded, which is no error of the connection.
		const response = server.request({ consumes: false });
		await server.send(bytes);
		if (code === errorCode.flowControlError) {
			expect(server.resetCode(1)).toBe(code);
		} else {
			expect(server.goawayCode).toBe(code);
			expect(server.ending?.code).toBe(code);
		}
		expect(response.events.at(-1)).toMatch(/^reset/);
	});

	it("a first frame that is not SETTINGS", async () => {
		const server = new RawServer();
		const response = server.request();
		await server.send(frame(ping, 0, 0, Buffer.alloc(8)));
		expect(server.goawayCode).toBe(errorCode.protocolError);
		expect(response.events).toEqual([`reset ${errorCode.protocolError} connection`]);
	});

	it("a server that is silent from the beginning", async () => {
		const server = new RawServer({ prefaceTimeoutMs: 1_000 });
		const response = server.request();
		server.clock.advance(1_000);
		await settle();
		expect(server.ending?.message).toBe("the server did not send its preface in time");
		expect(response.events).toEqual([`reset ${errorCode.protocolError} connection`]);
	});
});

describe("when the server announces the end", () => {
	it("what it has not processed is refused, and the rest goes on", async () => {
		const server = await begun([[setting.maxConcurrentStreams, 2]]);
		const [first, second, waiting] = [server.request(), server.request(), server.request()];
		await server.send(frame(goaway, 0, 0, Buffer.concat([uint32(1, 0), Buffer.from("stop")])));
		const refused = [`reset ${errorCode.refusedStream} peer`];
		expect(second.events).toEqual(refused);
		expect(waiting.events).toEqual(refused);
		expect(server.reports).toEqual(["settings", "goaway 1 0 stop"]);
		expect(server.connection.isOpen).toBe(false);
		expect(() => server.request()).toThrow("the connection accepts no requests");
		await server.send(headers(1, ok, true));
		expect(first.events).toEqual(["head 200", "end", "finish"]);
		expect(server.isEnded).toBe(true);
		server.socket.end();
		expect(await server.connection.closed).toEqual({ code: 0, message: "" });
	});

	it("what is refused has closed before the end is reported, and is told after it", async () => {
		const server = await begun([[setting.maxConcurrentStreams, 2]]);
		const responses = [server.request(), server.request(), server.request()];
		let seen: unknown;
		server.atGoaway = () => {
			const { isOpen, activeStreams } = server.connection;
			const streams = responses.map(({ stream, events }) => [stream?.isClosed, ...events]);
			seen = { isOpen, activeStreams, streams };
		};
		await server.send(frame(goaway, 0, 0, uint32(1, 0)));
		expect(seen).toEqual({ isOpen: false, activeStreams: 1, streams: [[false], [true], [true]] });
		const refused = [`reset ${errorCode.refusedStream} peer`];
		expect(responses.map(({ events }) => events)).toEqual([[], refused, refused]);
	});

	it("what is refused is told, even if the report fails", async () => {
		const server = await begun([[setting.maxConcurrentStreams, 2]]);
		const responses = [server.request(), server.request(), server.request()];
		server.atGoaway = () => {
			throw new Error("a bug");
		};
		await server.send(frame(goaway, 0, 0, uint32(1, 0)));
		const refused = [`reset ${errorCode.refusedStream} peer`];
		expect(responses.map(({ events }) => events)).toEqual([
			[`reset ${errorCode.internalError} connection`],
			refused,
			refused,
		]);
		expect(server.internalErrors).toEqual([new Error("a bug")]);
	});

	it("with an error, everything ends", async () => {
		const server = await begun();
		const response = server.request();
		await server.send(frame(goaway, 0, 0, uint32(1, errorCode.enhanceYourCalm)));
		expect(server.reports).toEqual(["settings", "goaway 1 11", "ending"]);
		expect(response.events).toEqual([`reset ${errorCode.enhanceYourCalm} connection`]);
		expect(server.isEnded).toBe(true);
	});

	it("by closing the socket, requests are reset, and those that wait too", async () => {
		const server = await begun([[setting.maxConcurrentStreams, 1]]);
		const responses = [server.request(), server.request()];
		server.socket.end();
		await settle();
		expect(server.reports.at(-1)).toBe("ending");
		expect(responses.map(({ events }) => events)).toEqual([
			["reset 0 connection"],
			["reset 0 connection"],
		]);
		expect((await server.connection.closed).code).toBe(errorCode.noError);
		expect(server.clock.nextTimerMs()).toBeUndefined();
	});

	it("by an error of the socket, the reason has it", async () => {
		const server = await begun();
		server.request();
		const error = new Error("reset by peer");
		server.socket.destroy(error);
		await settle();
		expect(server.ending?.code).toBe(errorCode.noError);
	});
});

describe("the client ends the connection", () => {
	it("in order: what was requested is completed", async () => {
		const server = await begun([[setting.maxConcurrentStreams, 1]]);
		const [first, waiting] = [server.request(), server.request()];
		const closed = server.connection.close();
		expect(server.connection.isOpen).toBe(false);
		await server.send(headers(1, ok, true));
		expect(server.isEnded).toBe(false);
		await server.send(headers(3, ok, true));
		expect([first, waiting].map(({ events }) => events.at(-1))).toEqual(["finish", "finish"]);
		expect(server.goawayCode).toBe(errorCode.noError);
		expect(server.isEnded).toBe(true);
		server.socket.end();
		expect((await closed).code).toBe(errorCode.noError);
		expect(server.clock.nextTimerMs()).toBeUndefined();
	});

	it("at once", async () => {
		const server = await begun();
		const response = server.request();
		server.connection.destroy(errorCode.cancel);
		await settle();
		expect(response.events).toEqual([`reset ${errorCode.cancel} connection`]);
		expect(server.goawayCode).toBe(errorCode.cancel);
	});

	it("a request, whose later frames are dropped", async () => {
		const server = await begun();
		const response = server.request();
		await server.send(headers(1, ok));
		response.stream?.reset(errorCode.cancel);
		await settle();
		expect(server.resetCode(1)).toBe(errorCode.cancel);
		await server.send(frame(data, 0, 1, Buffer.alloc(10)), headers(1, ["a", "b"], true));
		expect(response.events).toEqual(["head 200", `reset ${errorCode.cancel} local`]);
		expect(server.ending).toBeUndefined();
	});
});

describe("a request is not made that has", () => {
	it.each([
		["no method first", [":path", "/", ":method", "GET"], "the first field of a request"],
		["no path", [":method", "GET", ":scheme", "http"], ":path is missing"],
		["a line break in a value", [...requestHead, "a", "b\nc"], "invalid value"],
		["a line break in a name", [...requestHead, "a\nb", "c"], 'field "a\\nb" has an invalid name'],
		["capital letters in a name", [...requestHead, "A", "b"], 'field "A" has an invalid name'],
		["an unknown pseudo-header field", [...requestHead.slice(0, 8), ":a", "b"], '":a"'],
		["a connection-specific field", [...requestHead, "connection", "close"], "not allowed"],
		["characters beyond Latin-1", [...requestHead, "a", "\u20ac"], "beyond Latin-1"],
		["half of a field", [...requestHead, "a"], "pairs"],
	])("%s", async (_, fields, message) => {
		const server = await begun();
		expect(() => server.request({ fields })).toThrow(message);
		expect(server.connection.activeStreams).toBe(0);
	});
});
