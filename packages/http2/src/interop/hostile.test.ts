import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { errorCode } from "../error-code.ts";
import { clientPreface, flag, frameType, setting } from "../frames/frame.ts";
import { frame, literals, requestFields, settingsFrame, uint32 } from "../frames.fixture.ts";
import { defaultHttp2Limits } from "../limits.ts";
import { startServer } from "./test-server.fixture.ts";

const ended = flag.endHeaders | flag.endStream;
const block = literals(...requestFields);
const large = Buffer.alloc(100_000);

/** Responds to each request with 100 kB. */
const startLargeServer = () =>
	startServer((stream) => ({
		onData: (bytes) => stream.consume(bytes.length),
		onEnd: () => {
			stream.respond(200, ["content-type", "application/grpc"]);
			stream.end(large, ["grpc-status", "0"]);
		},
		onReset: () => {},
	}));

interface Attack {
	readonly start?: Buffer;
	/** What is sent again and again. */
	readonly piece: (index: number) => Buffer;
	/** Whether the attacker reads what it gets. */
	readonly reads: boolean;
}

const request = (id: number) => frame(frameType.headers, ended, id, block);

const attacks: Readonly<Record<string, Attack>> = {
	"rapid reset": {
		piece: (index) =>
			Buffer.concat([
				request(1 + index * 2),
				frame(frameType.rstStream, 0, 1 + index * 2, uint32(8)),
			]),
		reads: true,
	},
	"rapid reset by wrong credit": {
		piece: (index) =>
			Buffer.concat([
				request(1 + index * 2),
				frame(frameType.windowUpdate, 0, 1 + index * 2, uint32(0)),
			]),
		reads: true,
	},
	"a header block without end": {
		start: frame(frameType.headers, flag.endStream, 1, block),
		piece: () => frame(frameType.continuation, 0, 1, Buffer.from([0x82])),
		reads: true,
	},
	"pings that are not read": {
		piece: () => frame(frameType.ping, 0, 0, large.subarray(0, 8)),
		reads: false,
	},
	"settings that are not read": {
		piece: () => settingsFrame([setting.initialWindowSize, 7]),
		reads: false,
	},
	"empty frames": {
		start: frame(frameType.headers, flag.endHeaders, 1, block),
		piece: () => frame(frameType.data, 0, 1),
		reads: true,
	},
	"bytes by the window": {
		start: Buffer.concat([settingsFrame([setting.initialWindowSize, 0]), request(1)]),
		piece: () => frame(frameType.windowUpdate, 0, 1, uint32(1)),
		reads: true,
	},
	"header lists that are larger than their blocks": {
		piece: (index) =>
			index === 0
				? frame(
						frameType.headers,
						ended,
						1,
						Buffer.concat([
							block,
							Buffer.from([0x40]),
							literals("a", "x".repeat(4000)).subarray(1),
						]),
					)
				: frame(
						frameType.headers,
						ended,
						1 + index * 2,
						Buffer.concat([block, Buffer.alloc(200, 0xbe)]),
					),
		reads: true,
	},
};

/** Sends pieces until the server closes the connection; returns why it did, and the most that has waited in it. */
async function run({ start, piece, reads }: Attack) {
	const server = await startLargeServer();
	const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
	socket.on("error", () => {});
	await once(socket, "connect");
	if (reads) {
		socket.resume();
	}
	socket.write(Buffer.concat([clientPreface, settingsFrame(), start ?? Buffer.alloc(0)]));
	await expect.poll(() => server.connections.length).toBe(1);
	const [connection] = server.connections;
	let isClosed = false;
	void connection?.closed.then(() => {
		isClosed = true;
	});
	let mostUnsent = 0;
	for (let index = 0; !isClosed && index < 1_000_000; index += 50) {
		const pieces = Array.from({ length: 50 }, (_, offset) => piece(index + offset));
		if (!socket.destroyed && !socket.write(Buffer.concat(pieces))) {
			const drained = Promise.race([once(socket, "drain"), once(socket, "close")]);
			// A write that the closed connection did not take fails the socket, which is what an attack ends with.
			await Promise.race([drained, connection?.closed]).catch(() => {});
		}
		await new Promise((resolve) => setImmediate(resolve));
		mostUnsent = Math.max(mostUnsent, connection?.unsentBytes ?? 0);
	}
	socket.destroy();
	return { reason: await connection?.closed, mostUnsent, connection };
}

describe("a connection is ended, and its memory bounded, that is attacked with", () => {
	it.each(Object.entries(attacks))("%s", async (_, attack) => {
		const { reason, mostUnsent, connection } = await run(attack);
		expect(reason?.code).toBe(errorCode.enhanceYourCalm);
		expect(mostUnsent).toBeLessThanOrEqual(defaultHttp2Limits.maxUnsentBytes);
		expect(connection?.activeStreams).toBe(0);
		expect(connection?.unsentBytes).toBe(0);
	});

	it("requests whose responses it does not read", async () => {
		const { reason, mostUnsent } = await run({
			piece: (index) => request(1 + index * 2),
			reads: false,
		});
		expect(reason?.code).toBe(errorCode.enhanceYourCalm);
		expect(mostUnsent).toBeGreaterThan(65_535);
		expect(mostUnsent).toBeLessThanOrEqual(defaultHttp2Limits.maxUnsentBytes);
	});
});
