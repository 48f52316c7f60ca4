import { describe, expect, it } from "vitest";
import { errorCode } from "../error-code.ts";
import { flag, frameType, setting } from "../frames/frame.ts";
import { frame, settingsFrame, uint32 } from "../frames.fixture.ts";
import type { Http2Stream } from "../http2.ts";
import { RawClient, settle } from "../raw-client.fixture.ts";

const { data, settings, windowUpdate } = frameType;

function credit(id: number, increment: number): Buffer {
	return frame(windowUpdate, 0, id, uint32(increment));
}

function dataBytes(client: RawClient, id: number): number {
	return client.of(data, id).reduce((sum, { payload }) => sum + payload.length, 0);
}

/** A client whose streams begin with `window`, and whose connection has `connection` more than the protocol's. */
async function clientWith(window: number, connection = 0): Promise<RawClient> {
	const client = new RawClient();
	await client.send(settingsFrame([setting.initialWindowSize, window]));
	if (connection > 0) {
		await client.send(credit(0, connection));
	}
	return client;
}

describe("a stream that is written to while the socket is busy", () => {
	it("gets a notice of what the socket has taken, and the last one when nothing is left", async () => {
		const notices: string[] = [];
		const streams: Http2Stream[] = [];
		const client = new RawClient({
			limits: { streamHighWaterMark: 0 },
			onRequest: (stream) => {
				streams.push(stream);
				stream.respond(200, []);
				return {
					onData: () => {},
					onEnd: () => {},
					onDrain: () => notices.push("all"),
					onProgress: () => notices.push(`all but ${stream.unsentBytes}`),
					onReset: () => {},
				};
			},
		});
		await client.send(settingsFrame([setting.initialWindowSize, 1_000_000]), credit(0, 1_000_000));
		await client.send(client.headers(1));
		const [stream] = streams;
		client.socket.pause();
		// More than the socket takes while nobody reads.
		stream?.write(Buffer.alloc(100_000));
		await settle();
		for (let part = 1; part <= 3; part++) {
			stream?.write(Buffer.alloc(100_000 + part));
			while (notices.length < part) {
				client.socket.read();
				await settle();
			}
		}
		expect(notices).toEqual(["all but 100001", "all but 100002", "all but 100003"]);
		client.socket.resume();
		await settle();
		expect(notices.at(-1)).toBe("all");
	});
});

describe("credit of the client", () => {
	it("limits a stream, and is used exactly", async () => {
		const client = await clientWith(10);
		await client.send(client.headers(1));
		const { stream, events } = client.request;
		stream.respond(200, []);
		expect(stream.write(Buffer.alloc(25, 1))).toBe(true);
		stream.end(undefined, ["a", "b"]);
		await settle();
		expect([dataBytes(client, 1), stream.unsentBytes]).toEqual([10, 15]);
		await client.send(credit(1, 14));
		expect([dataBytes(client, 1), stream.unsentBytes]).toEqual([24, 1]);
		expect(client.of(frameType.headers, 1)).toHaveLength(1);
		await client.send(credit(1, 1));
		expect(dataBytes(client, 1)).toBe(25);
		expect(client.of(frameType.headers, 1)[1]?.flags).toBe(flag.endHeaders | flag.endStream);
		expect(events).toEqual(["end", "finish"]);
		expect(stream.isClosed).toBe(true);
	});

	it("limits the connection, whose streams take turns", async () => {
		const client = await clientWith(1_000_000);
		await client.send(client.headers(1), client.headers(3));
		for (const { stream } of client.requests) {
			stream.respond(200, []);
			stream.end(Buffer.alloc(100_000));
		}
		await settle();
		expect(dataBytes(client, 1) + dataBytes(client, 3)).toBe(65_535);
		expect(Math.abs(dataBytes(client, 1) - dataBytes(client, 3))).toBeLessThanOrEqual(16_384);
		await client.send(credit(0, 1));
		expect(dataBytes(client, 1) + dataBytes(client, 3)).toBe(65_536);
		await client.send(credit(0, 1_000_000));
		expect([dataBytes(client, 1), dataBytes(client, 3)]).toEqual([100_000, 100_000]);
	});

	it("is not needed for the end of a response", async () => {
		const client = await clientWith(0);
		await client.send(client.headers(1), client.headers(3));
		for (const { stream } of client.requests) {
			stream.respond(200, []);
			stream.end();
		}
		await settle();
		expect(client.requests.map(({ events }) => events.at(-1))).toEqual(["finish", "finish"]);
	});

	it("is not needed for an end that was written while the socket was busy", async () => {
		const client = await clientWith(1_000_000, 0);
		await client.send(client.headers(1), client.headers(3));
		const [large, small] = client.requests.map(({ stream }) => stream);
		large?.respond(200, []);
		small?.respond(200, []);
		await settle();
		client.socket.pause();
		large?.write(Buffer.alloc(65_535));
		await settle();
		small?.end(undefined, ["a", "b"]);
		await settle();
		client.socket.resume();
		await settle();
		expect(dataBytes(client, 1)).toBe(65_535);
		expect(client.of(frameType.headers, 3)[1]?.flags).toBe(flag.endHeaders | flag.endStream);
		expect(client.requests[1]?.events).toEqual(["end", "finish"]);
	});

	it("changes by the last of several initial windows", async () => {
		const client = await clientWith(100);
		await client.send(client.headers(1), credit(1, 1));
		const { stream } = client.request;
		stream.respond(200, []);
		stream.write(Buffer.alloc(200));
		const largest = 2 ** 31 - 1;
		await client.send(
			settingsFrame([setting.initialWindowSize, largest], [setting.initialWindowSize, 110]),
		);
		expect(client.goawayCode).toBeUndefined();
		expect(dataBytes(client, 1)).toBe(111);
	});

	it("changes for open streams with the initial window, also below 0", async () => {
		const client = await clientWith(100);
		await client.send(client.headers(1));
		const { stream } = client.request;
		stream.respond(200, []);
		stream.write(Buffer.alloc(100));
		await client.send(settingsFrame([setting.initialWindowSize, 30]));
		stream.write(Buffer.alloc(50));
		await client.send(credit(1, 70));
		expect(dataBytes(client, 1)).toBe(100);
		await client.send(credit(1, 1));
		expect(dataBytes(client, 1)).toBe(101);
		await client.send(settingsFrame([setting.initialWindowSize, 40]));
		expect(dataBytes(client, 1)).toBe(111);
		expect(stream.unsentBytes).toBe(39);
	});

	it("tells how much the client has not acknowledged", async () => {
		const client = await clientWith(100);
		await client.send(client.headers(1));
		const { stream } = client.request;
		stream.respond(200, []);
		stream.write(Buffer.alloc(60));
		expect(stream.unacknowledgedBytes).toBe(60);
		await client.send(credit(1, 50));
		expect(stream.unacknowledgedBytes).toBe(10);
	});

	it("is waited for by a writer, which is notified", async () => {
		const client = await clientWith(100_000, 1_000_000);
		await client.send(client.headers(1));
		const { stream, events } = client.request;
		stream.respond(200, []);
		expect(stream.write(Buffer.alloc(65_535))).toBe(true);
		expect(stream.write(Buffer.alloc(65_535))).toBe(false);
		await client.send(credit(1, 100_000));
		expect(events).toEqual(["end", "drain"]);
		expect(client.connection.unsentBytes).toBe(0);
	});

	it("is used by frames of the size that the client accepts", async () => {
		const client = await clientWith(100_000, 1_000_000);
		await client.send(client.headers(1));
		const { stream } = client.request;
		stream.respond(200, []);
		stream.write(Buffer.alloc(20_000));
		await settle();
		await client.send(settingsFrame([setting.maxFrameSize, 30_000]));
		stream.write(Buffer.alloc(35_000));
		await settle();
		expect(client.of(data, 1).map(({ payload }) => payload.length)).toEqual([
			16_384, 3_616, 30_000, 5_000,
		]);
	});
});

describe("credit of the server", () => {
	const limits = { streamWindowBytes: 100_000, connectionWindowBytes: 150_000 };
	const body = (id: number, size: number) => [
		...Array.from({ length: Math.floor(size / 10_000) }, () =>
			frame(data, 0, id, Buffer.alloc(10_000)),
		),
		frame(data, 0, id, Buffer.alloc(size % 10_000)),
	];

	it("is announced first", () => {
		const client = new RawClient({ limits });
		return settle().then(() => {
			expect(client.of(windowUpdate, 0)[0]?.payload.readUInt32BE()).toBe(150_000 - 65_535);
		});
	});

	it("ends the connection of a client that exceeds it", async () => {
		const client = new RawClient({ limits, consumes: false });
		await client.send(client.headers(1, false), client.headers(3, false));
		await client.send(...body(1, 100_000), ...body(3, 50_000));
		expect(client.goawayCode).toBeUndefined();
		await client.send(frame(data, 0, 3, Buffer.alloc(1)));
		expect(client.goawayCode).toBe(errorCode.flowControlError);
	});

	it("resets a stream that exceeds it, and returns its bytes to the connection", async () => {
		const client = new RawClient({ limits, consumes: false });
		await client.send(client.headers(1, false), client.headers(3, false));
		await client.send(...body(1, 100_000), frame(data, 0, 1, Buffer.alloc(1)));
		expect(client.resetCode(1)).toBe(errorCode.flowControlError);
		expect(client.of(windowUpdate, 0).at(-1)?.payload.readUInt32BE()).toBe(100_001);
		await client.send(...body(3, 100_000));
		expect(client.goawayCode).toBeUndefined();
	});

	it("is returned when a handler consumes, also that of padding", async () => {
		const client = new RawClient({ limits, consumes: false });
		await client.send(client.headers(1, false), ...body(1, 100_000));
		expect(client.of(windowUpdate, 1)).toEqual([]);
		client.request.stream.consume(1);
		await settle();
		expect(client.of(windowUpdate, 1).map(({ payload }) => payload.readUInt32BE())).toEqual([1]);
		expect(() => client.request.stream.consume(100_000)).toThrow("99999 unconsumed");
		client.request.stream.consume(99_999);
		await settle();
		expect(client.of(windowUpdate, 1).at(-1)?.payload.readUInt32BE()).toBe(99_999);
		const before = client.of(windowUpdate, 1).length;
		const padded = Buffer.concat([Buffer.from([255]), Buffer.alloc(255)]);
		for (let count = 0; count < 196; count++) {
			await client.send(frame(data, flag.padded, 1, padded));
		}
		expect(client.of(windowUpdate, 1)).toHaveLength(before + 1);
	});

	it("of a smaller initial window counts once the client knows of it", async () => {
		const small = { streamWindowBytes: 10 };
		const client = new RawClient({ limits: small, consumes: false });
		await client.send(client.headers(1, false), frame(data, 0, 1, Buffer.alloc(5)));
		await client.send(frame(data, 0, 1, Buffer.alloc(95)));
		expect(client.resetCode(1)).toBeUndefined();
		await client.send(frame(settings, flag.ack, 0));
		client.request.stream.consume(100);
		await client.send(client.headers(3, false), frame(data, 0, 3, Buffer.alloc(10)));
		expect(client.of(windowUpdate, 1).map(({ payload }) => payload.readUInt32BE())).toEqual([100]);
		expect(client.resetCode(3)).toBeUndefined();
		await client.send(frame(data, 0, 3, Buffer.alloc(1)));
		expect(client.resetCode(3)).toBe(errorCode.flowControlError);
	});
});
