import { describe, expect, it } from "vitest";
import { errorCode } from "../error-code.ts";
import { clientPreface, flag, frameType, setting } from "../frames/frame.ts";
import { frame, literals, requestFields, settingsFrame, uint32 } from "../frames.fixture.ts";
import { RawClient, settle } from "../raw-client.fixture.ts";

const { data, headers, rstStream, ping, windowUpdate, continuation } = frameType;
const ended = flag.endHeaders | flag.endStream;
const block = literals(...requestFields);
const settingsAck = frame(frameType.settings, flag.ack, 0);

/** Sends pieces until the connection ends; returns how many it took, or undefined if it takes them all. */
async function floodWith(
	client: RawClient,
	count: number,
	piece: (index: number) => Buffer,
): Promise<number | undefined> {
	for (let index = 0; index < count; index += 50) {
		await client.send(...Array.from({ length: 50 }, (_, offset) => piece(index + offset)));
		if (client.goawayCode !== undefined) {
			return index;
		}
	}
	return undefined;
}

describe("limits", () => {
	it("refuse streams beyond the concurrent ones, without a handler", async () => {
		const client = new RawClient({ limits: { maxConcurrentStreams: 2 } });
		await client.send(client.headers(1), client.headers(3), client.headers(5, false));
		await client.send(frame(data, flag.endStream, 5, Buffer.alloc(10)));
		expect(client.resetCode(5)).toBe(errorCode.refusedStream);
		expect(client.requests).toHaveLength(2);
		client.requests[0]?.stream.respond(200, [], true);
		await client.send(client.headers(7));
		expect(client.requests).toHaveLength(3);
		expect(client.connection.activeStreams).toBe(2);
	});

	it("give status 431 to a large header list, and keep the connection", async () => {
		const client = new RawClient({ limits: { maxHeaderListBytes: 1000 } });
		const large = literals(...requestFields, "a", "x".repeat(1000));
		await client.send(frame(headers, ended, 1, large), frame(headers, flag.endHeaders, 3, large));
		const [first] = client.of(headers, 1);
		expect(first && client.decode(first)).toEqual([":status", "431"]);
		expect(client.resetCode(1)).toBeUndefined();
		expect(client.resetCode(3)).toBe(errorCode.noError);
		await client.send(client.headers(5));
		expect(client.requests).toHaveLength(1);
	});

	it("end a connection whose header block does not end", async () => {
		const client = new RawClient();
		await client.send(frame(headers, flag.endStream, 1, block));
		expect(await floodWith(client, 200, () => frame(continuation, 0, 1))).toBe(0);
		expect(client.goawayCode).toBe(errorCode.enhanceYourCalm);
	});

	it("end a connection whose header block is too long", async () => {
		const client = new RawClient();
		const part = Buffer.alloc(16_000);
		await client.send(frame(headers, 0, 1, part), frame(continuation, 0, 1, part));
		expect(client.goawayCode).toBeUndefined();
		await client.send(frame(continuation, 0, 1, part));
		expect(client.goawayCode).toBe(errorCode.enhanceYourCalm);
	});

	it("end a connection with too many parameters in one SETTINGS frame", async () => {
		const client = new RawClient();
		const parameters = Array.from({ length: 33 }, () => [setting.initialWindowSize, 1] as const);
		await client.send(settingsFrame(...parameters.slice(1)));
		expect(client.goawayCode).toBeUndefined();
		await client.send(settingsFrame(...parameters));
		expect(client.goawayCode).toBe(errorCode.enhanceYourCalm);
	});

	it("end a connection whose small header blocks are large lists", async () => {
		const client = new RawClient();
		const entry = Buffer.concat([Buffer.from([0x40]), literals("a", "x".repeat(4000)).subarray(1)]);
		await client.send(frame(headers, ended, 1, Buffer.concat([block, entry])));
		const bomb = Buffer.concat([block, Buffer.alloc(14_000, 0xbe)]);
		await client.send(frame(headers, ended, 3, bomb));
		expect(client.goawayCode).toBe(errorCode.enhanceYourCalm);
	});

	it.each<[string, (index: number) => Buffer]>([
		["PING", () => frame(ping, 0, 0, Buffer.alloc(8))],
		["PING acknowledgements", () => frame(ping, flag.ack, 0, Buffer.alloc(8))],
		["SETTINGS", () => settingsFrame([setting.initialWindowSize, 1])],
		["empty DATA", () => frame(data, 0, 1)],
		["padded, empty DATA", () => frame(data, flag.padded, 1, Buffer.from([1, 0]))],
		["PRIORITY", () => frame(frameType.priority, 0, 1, Buffer.alloc(5))],
		["unknown frames", () => frame(0xaa, 0, 1)],
		["tiny credit", () => frame(windowUpdate, 0, 1, uint32(1))],
		["credit for closed streams", () => frame(windowUpdate, 0, 3, uint32(5000))],
		["RST_STREAM of closed streams", () => frame(rstStream, 0, 3, uint32(8))],
		[
			"requests that are reset",
			(index) =>
				Buffer.concat([
					frame(headers, ended, 5 + index * 2, block),
					frame(rstStream, 0, 5 + index * 2, uint32(8)),
				]),
		],
		["malformed requests", (index) => frame(headers, ended, 5 + index * 2, literals("a", "b"))],
		[
			"requests with too large heads",
			(index) => frame(headers, ended, 5 + index * 2, literals("a", "b".repeat(16_000))),
		],
	])("end a connection that is flooded with %s", async (_, piece) => {
		const client = new RawClient({
			limits: {
				controlFrames: { burst: 200, perSecond: 10 },
				settingsFrames: { burst: 200, perSecond: 10 },
				streamErrors: { burst: 200, perSecond: 10 },
			},
		});
		await client.send(client.headers(1, false), client.headers(3));
		client.request.stream.respond(200, [], true);
		expect(await floodWith(client, 150, piece)).toBeUndefined();
		client.clock.advance(10_000);
		expect(await floodWith(client, 100, (index) => piece(150 + index))).toBeUndefined();
		expect(await floodWith(client, 200, (index) => piece(250 + index))).toBeDefined();
		expect(client.goawayCode).toBe(errorCode.enhanceYourCalm);
		expect(client.isEnded).toBe(true);
	});

	it("end a connection that is flooded with SETTINGS, whatever else it sends and receives", async () => {
		const client = new RawClient();
		await client.send(client.headers(1, false));
		client.request.stream.respond(200, []);
		const change = (index: number) => {
			client.request.stream.write(Buffer.alloc(1));
			return Buffer.concat([
				frame(data, 0, 1, Buffer.alloc(256)),
				settingsFrame([setting.initialWindowSize, 1_000_000 + index]),
			]);
		};
		expect(await floodWith(client, 50, change)).toBeUndefined();
		client.clock.advance(10_000);
		expect(await floodWith(client, 200, change)).toBeDefined();
		expect(client.goawayCode).toBe(errorCode.enhanceYourCalm);
	});

	it("tolerate more pings for each 256 bytes of a request, until its response has ended", async () => {
		const client = new RawClient({ limits: { controlFrames: { burst: 100, perSecond: 0.001 } } });
		const piece = () =>
			Buffer.concat([frame(data, 0, 1, Buffer.alloc(256)), frame(ping, 0, 0, Buffer.alloc(8))]);
		await client.send(client.headers(1, false));
		expect(await floodWith(client, 1_000, piece)).toBeUndefined();
		client.request.stream.respond(200, [], true);
		expect(await floodWith(client, 1_000, piece)).toBeDefined();
		expect(client.goawayCode).toBe(errorCode.enhanceYourCalm);
	});

	it("tolerate any number of pings and credit of a client whose streams make progress", async () => {
		const client = new RawClient({ limits: { controlFrames: { burst: 100, perSecond: 0.001 } } });
		await client.send(client.headers(1));
		client.request.stream.respond(200, []);
		const useful = () => {
			client.request.stream.write(Buffer.alloc(10));
			return Buffer.concat([frame(ping, 0, 0, Buffer.alloc(8))]);
		};
		expect(await floodWith(client, 1000, useful)).toBeUndefined();
	});

	it("tolerate clients that return credit for each small message, to the stream and to the connection", async () => {
		const client = new RawClient({ limits: { controlFrames: { burst: 600, perSecond: 0.001 } } });
		await client.send(client.headers(1));
		client.request.stream.respond(200, []);
		const returned = () => {
			client.request.stream.write(Buffer.alloc(25));
			return Buffer.concat([
				...Array.from({ length: 4 }, () => frame(windowUpdate, 0, 0, uint32(5))),
				...Array.from({ length: 5 }, () => frame(windowUpdate, 0, 1, uint32(5))),
				frame(ping, 0, 0, Buffer.alloc(8)),
			]);
		};
		expect(await floodWith(client, 5000, returned)).toBeUndefined();
	});

	it("do not count small data, which flow control limits", async () => {
		const controlFrames = { burst: 10, perSecond: 0.001 };
		const client = new RawClient({ limits: { controlFrames } });
		await client.send(client.headers(1, false));
		expect(await floodWith(client, 5000, () => frame(data, 0, 1, Buffer.alloc(1)))).toBeUndefined();
		expect(client.request.body.length).toBe(5000);
		const unread = new RawClient({
			consumes: false,
			limits: { controlFrames, streamWindowBytes: 2000 },
		});
		await unread.send(settingsAck, unread.headers(1, false));
		await unread.send(...Array.from({ length: 2000 }, () => frame(data, 0, 1, Buffer.alloc(1))));
		expect(unread.resetCode(1)).toBeUndefined();
		await unread.send(frame(data, 0, 1, Buffer.alloc(1)));
		expect(unread.resetCode(1)).toBe(errorCode.flowControlError);
	});

	it("do not count credit of 256 bytes, until a window is full", async () => {
		const client = new RawClient({
			limits: { controlFrames: { burst: 10, perSecond: 0.001 } },
		});
		await client.send(client.headers(1));
		const credit = (id: number) => frame(windowUpdate, 0, id, uint32(256));
		expect(await floodWith(client, 5000, () => credit(1))).toBeUndefined();
		expect(await floodWith(client, 5000, () => credit(0))).toBeUndefined();
		await client.send(frame(windowUpdate, 0, 1, uint32(2 ** 31 - 1 - 65_535 - 5000 * 256)));
		await client.send(credit(1));
		expect(client.resetCode(1)).toBe(errorCode.flowControlError);
		await client.send(frame(windowUpdate, 0, 0, uint32(2 ** 31 - 1 - 65_535 - 5000 * 256)));
		await client.send(credit(0));
		expect(client.goawayCode).toBe(errorCode.flowControlError);
	});

	it("reset a stream that writes more than may wait", async () => {
		const client = new RawClient({ limits: { maxUnsentBytes: 1_000_000 } });
		await client.send(client.headers(1), client.headers(3));
		for (const { stream } of client.requests) {
			stream.respond(200, []);
			expect(stream.write(Buffer.alloc(600_000))).toBe(false);
		}
		await settle();
		expect(client.resetCode(3)).toBe(errorCode.enhanceYourCalm);
		expect(client.requests[1]?.events).toEqual(["end", "reset 11 local"]);
		expect(client.connection.unsentBytes).toBe(600_000 - 65_535);
	});

	it("reset a response without progress, and no other", async () => {
		const client = new RawClient();
		await client.send(client.headers(1), client.headers(3), client.headers(5));
		for (const { stream } of client.requests) {
			stream.respond(200, []);
		}
		await client.send(settingsFrame([setting.initialWindowSize, 0]));
		client.requests[0]?.stream.write(Buffer.alloc(100));
		client.requests[1]?.stream.write(Buffer.alloc(100));
		await settle();
		for (let half = 0; half < 4; half++) {
			client.clock.advance(30_000);
			await client.send(frame(windowUpdate, 0, 3, uint32(1)));
		}
		expect(client.resetCode(1)).toBe(errorCode.cancel);
		expect(client.resetCode(3)).toBeUndefined();
		expect(client.resetCode(5)).toBeUndefined();
		expect(client.connection.unsentBytes).toBe(96);
	});

	it("end a connection whose header block is not completed in time", async () => {
		const client = new RawClient();
		await client.send(frame(headers, flag.endStream, 1, block));
		client.clock.advance(30_000);
		await client.send(frame(continuation, flag.endHeaders, 1));
		client.clock.advance(60_000);
		expect(client.requests).toHaveLength(1);
		await client.send(frame(headers, flag.endStream, 3, block));
		client.clock.advance(90_000);
		await settle();
		expect(client.goawayCode).toBe(errorCode.enhanceYourCalm);
	});

	it("stop reading from a client that does not read, and close it in the end", async () => {
		const client = new RawClient({ begins: false });
		client.socket.pause();
		await client.send(clientPreface, settingsFrame());
		const request = (id: number) => frame(headers, ended, id, block);
		for (let id = 1; id < 40_000 && client.connection.counters.readPauses === 0; id += 2) {
			await client.send(request(id));
			client.requests.at(-1)?.stream.respond(200, ["a", "x".repeat(2000)], true);
		}
		expect(client.connection.counters.readPauses).toBe(1);
		// What was read at once may have responses beyond the limit.
		expect(client.serverSocket.writableLength).toBeLessThan(1024 * 1024 + 100_000);
		const opened = client.connection.counters.streamsOpened;
		await client.send(request(99_999));
		expect(client.connection.counters.streamsOpened).toBe(opened);
		client.clock.advance(120_000);
		expect(await client.connection.closed).toEqual({
			code: errorCode.enhanceYourCalm,
			message: "the client is not reading",
		});
	});

	it("go on reading from a client that reads later", async () => {
		const client = new RawClient({ limits: { maxBufferedBytes: 100_000 } });
		client.socket.pause();
		for (let id = 1; client.connection.counters.readPauses === 0; id += 2) {
			await client.send(client.headers(id));
			client.requests.at(-1)?.stream.respond(200, ["a", "x".repeat(2000)], true);
		}
		const opened = client.connection.counters.streamsOpened;
		await client.send(client.headers(99_999));
		client.socket.resume();
		await settle();
		expect(client.connection.counters.streamsOpened).toBe(opened + 1);
	});
});
