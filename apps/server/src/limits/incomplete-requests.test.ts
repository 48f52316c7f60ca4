import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { artist, musicModule } from "../../testdata/music.ts";
import {
	metric,
	metricReaches,
	openSession,
	openSocket,
	post,
	type RawCall,
} from "../raw-calls.fixture.ts";
import { startServer } from "../started-server.fixture.ts";

const write = "/plinth.resource.v1.ResourceService/Write";
const watch = "/plinth.resource.v1.ResourceService/WatchList";
const incomplete = "plinth_request_incomplete_bytes";
const paused = "plinth_requests_paused";
const refused = 'why="incomplete_bytes"';
const mebibyte = 1024 ** 2;
const limit = 4 * mebibyte;

async function start(incompleteBytes = limit) {
	const clock = new FakeClock({ nowMs: Date.now() });
	const server = await startServer({
		stopLimitMs: 200,
		modules: [musicModule()],
		runtime: { ...systemRuntime, clock },
		limits: { messageBytes: mebibyte, incompleteBytes },
	});
	return { address: server.address, clock };
}

type Session = ReturnType<typeof openSession>;

/** Calls by gRPC whose messages lack their last byte. */
function postIncomplete(session: Session, count: number, size: number, path = write): RawCall[] {
	const body = Buffer.alloc(5 + size - 1);
	body.writeUInt32BE(size, 1);
	return Array.from({ length: count }, () =>
		post(session, path, body, { contentType: "application/grpc", isOpen: true }),
	);
}

/** How many of the calls the server has taken all of that their clients sent. */
function taken(calls: readonly RawCall[]): number {
	return calls.filter(({ stream }) => stream.writableLength === 0).length;
}

function writeLarge(address: string, name: string): Promise<unknown> {
	const client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
	return client.write({ resource: artist(name, "x".repeat(900_000)) });
}

describe("requests that lack their last bytes", () => {
	it("stay on the socket beyond the total limit, over HTTP/2", async () => {
		const { address } = await start();
		const sessions = [openSession(address), openSession(address)];
		const calls = sessions.flatMap((session) => postIncomplete(session, 30, mebibyte));
		await metricReaches(address, paused, 58);
		expect(await metric(address, incomplete)).toBeLessThanOrEqual(limit);
		while (taken(calls) < 2) {
			await new Promise((resolve) => setTimeout(resolve, 10));
		}
		expect(taken(calls)).toBe(2);
		for (const session of sessions) {
			session.destroy();
		}
		await metricReaches(address, incomplete, 0);
		expect(await metric(address, paused)).toBe(0);
	});

	it("stay on the socket beyond the total limit, over HTTP/1.1", async () => {
		const { address } = await start(2 * limit);
		const sockets = await Promise.all(Array.from({ length: 20 }, () => openSocket(address)));
		const head = `POST ${write} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
		for (const [index, socket] of sockets.entries()) {
			// Half of them do not say how much is to come.
			socket.write(
				index % 2 === 0
					? `${head}content-length: ${mebibyte}\r\n\r\n`
					: `${head}transfer-encoding: chunked\r\n\r\n${(mebibyte - 1).toString(16)}\r\n`,
			);
			socket.write(Buffer.alloc(mebibyte - 1));
		}
		await metricReaches(address, paused, 14);
		expect(await metric(address, incomplete)).toBeLessThanOrEqual(2 * limit);
		for (const socket of sockets) {
			socket.destroy();
		}
		await metricReaches(address, incomplete, 0);
	});

	it("hold up neither small calls of others nor large ones", async () => {
		const { address } = await start();
		const session = openSession(address);
		postIncomplete(session, 30, mebibyte);
		await metricReaches(address, paused, 28);
		await expect(writeLarge(address, "large")).resolves.toBeDefined();
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
		await expect(client.write({ resource: artist("small", "x") })).resolves.toBeDefined();
		expect(await metric(address, "plinth_calls_cut_total")).toBe(0);
	});

	it("are replaced after 5 s by those of callers with fewer bytes", async () => {
		const { address, clock } = await start();
		const calls = [1, 2, 3].flatMap(() => postIncomplete(openSession(address), 1, 950_000));
		await metricReaches(address, incomplete, 3 * (5 + 950_000));
		const written = writeLarge(address, "large");
		await metricReaches(address, paused, 1);
		await clock.advance(4_000);
		expect(await metric(address, paused)).toBe(1);
		await clock.advance(1_000);
		await written;
		expect(await metric(address, "plinth_calls_cut_total", refused)).toBe(1);
		const [lost] = calls;
		lost?.stream.end();
		expect((await lost?.ended)?.status).toBe("grpc 8");
	});

	it("are ended at the limit on first bytes, however small", async () => {
		const { address } = await start();
		const calls = postIncomplete(openSession(address), 40, 50_000, watch);
		const [lost] = calls;
		while ((await metric(address, "plinth_calls_cut_total", refused)) < 40 - 20) {
			await new Promise((resolve) => setTimeout(resolve, 10));
		}
		expect(await metric(address, incomplete)).toBeLessThanOrEqual(limit / 4);
		lost?.stream.end();
		expect((await lost?.ended)?.status).toBe("grpc 8");
	});
});

describe("large requests", () => {
	it("all complete, however many are concurrent", async () => {
		const { address } = await start();
		const writes = Array.from({ length: 40 }, (_, each) => writeLarge(address, `large-${each}`));
		await expect(Promise.all(writes)).resolves.toHaveLength(40);
		expect(await metric(address, incomplete)).toBe(0);
		expect(await metric(address, "plinth_calls_cut_total")).toBe(0);
	});
});
