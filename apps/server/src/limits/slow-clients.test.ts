import { once } from "node:events";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf, Namespace } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { artist, musicModule } from "../../testdata/music.ts";
import {
	enveloped,
	metric,
	metricReaches,
	openSession,
	openSocket,
	post,
	postText,
} from "../raw-calls.fixture.ts";
import type { Server } from "../server.ts";
import type { ServerOptions } from "../server-options.ts";
import { startServer, whileTimePasses } from "../started-server.fixture.ts";

const list = "/plinth.resource.v1.ResourceService/List";
const read = "/plinth.resource.v1.ResourceService/Read";
const watch = "/plinth.resource.v1.ResourceService/WatchList";
const artists = JSON.stringify({
	type: { group: "music", groupVersion: "v1", kind: "Artist" },
	tenancy: { partition: "*", namespace: "*" },
});
const inFlight = "plinth_calls_in_flight";
const pending = "plinth_response_pending_bytes";
const cut = "plinth_calls_cut_total";
const enhanceYourCalm = 11;

interface Started {
	readonly server: Server;
	readonly clock: FakeClock;
	readonly address: string;
}

async function start(options: Partial<ServerOptions> = {}): Promise<Started> {
	const clock = new FakeClock({ nowMs: Date.now() });
	const server = await startServer({
		stopLimitMs: 200,
		modules: [musicModule()],
		runtime: { ...systemRuntime, clock },
		...options,
	});
	return { server, clock, address: server.address };
}

/** Stores as many MB as no buffer of a kernel holds. */
async function storeLarge({ server, clock }: Started, count = 16): Promise<void> {
	for (let index = 0; index < count; index += 1) {
		const resource = artist(`large-${index}`, "x".repeat(1_000_000));
		await whileTimePasses(clock, server.client.write({ resource }));
	}
}

async function readDefault({ address }: Started): Promise<string> {
	const transport = createConnectTransport({ baseUrl: address, httpVersion: "1.1" });
	const client = createClient(ResourceService, transport);
	return client.read({ id: idOf(Namespace, "default") }).then(
		() => "ok",
		(failure: unknown) => String(failure),
	);
}

describe("a call whose response is not read", () => {
	it("is in flight until the stream is reset after the write stall, over HTTP/2", async () => {
		const started = await start();
		const { address, clock } = started;
		const session = openSession(address, { initialWindowSize: 0 });
		const calls = Array.from({ length: 20 }, () => post(session, list, artists));
		await metricReaches(address, inFlight, 20);
		clock.advance(29_000);
		expect(await metric(address, inFlight)).toBe(20);
		clock.advance(3_000);
		for (const { ended } of calls) {
			expect((await ended).rstCode).toBe(enhanceYourCalm);
		}
		expect(await metric(address, inFlight)).toBe(0);
		expect(await metric(address, pending)).toBe(0);
		expect(await metric(address, cut, 'why="write_stall"')).toBe(20);
	});

	it("is in flight until the connection is cut after the write stall, over HTTP/1.1", async () => {
		const started = await start();
		const { address, clock } = started;
		await storeLarge(started);
		const sockets = await Promise.all(Array.from({ length: 3 }, () => openSocket(address)));
		for (const socket of sockets) {
			socket.write(postText(list, artists));
		}
		await metricReaches(address, inFlight, 3);
		while ((await metric(address, pending)) < 3_000_000) {
			await new Promise((resolve) => setTimeout(resolve, 10));
		}
		clock.advance(32_000);
		await metricReaches(address, inFlight, 0);
		expect(await metric(address, pending)).toBe(0);
		expect(await metric(address, cut, 'why="write_stall"')).toBe(3);
		for (const socket of sockets) {
			const closed = once(socket, "close");
			socket.resume();
			await closed;
		}
	});

	it("continues while the client reads a little now and then", async () => {
		const started = await start();
		const { address, clock } = started;
		await storeLarge(started);
		const socket = await openSocket(address);
		socket.write(postText(list, artists));
		let received = 0;
		socket.on("data", (data: Buffer) => {
			received += data.length;
		});
		const closed = once(socket, "close").then(() => {
			throw new Error(`the connection was closed after ${received} bytes`);
		});
		closed.catch(() => {});
		let before = await metric(address, pending);
		while (received < 16_000_000) {
			const next = received + 500_000;
			socket.resume();
			while (received < Math.min(next, 16_000_000)) {
				await Promise.race([once(socket, "data"), closed]);
			}
			socket.pause();
			const left = await metric(address, pending);
			// The time for the next 64 KiB starts again only when the client has read them.
			if (left > before || before - left >= 65_536) {
				clock.advance(left > before ? 0 : 20_000);
				before = left;
			}
		}
		expect(await metric(address, cut)).toBe(0);
	});

	it("counts while it waits for a call that was pipelined before it", async () => {
		const started = await start();
		const { address, clock } = started;
		const socket = await openSocket(address);
		socket.resume();
		const message = enveloped(JSON.stringify({ type: JSON.parse(artists).type })).toString(
			"latin1",
		);
		const calls = Array.from({ length: 10 }, () => postText(read, "{}"));
		socket.write(postText(watch, message, "application/connect+json") + calls.join(""), "latin1");
		await metricReaches(address, inFlight, 10);
		clock.advance(32_000);
		await once(socket, "close");
		await metricReaches(address, inFlight, 0);
	});

	it("no longer counts when its connection closes, pipelined or not", async () => {
		const started = await start();
		const { address } = started;
		const socket = await openSocket(address);
		const message = enveloped(JSON.stringify({ type: JSON.parse(artists).type })).toString(
			"latin1",
		);
		const watches = Array.from({ length: 3 }, () =>
			postText(watch, message, "application/connect+json"),
		);
		const calls = Array.from({ length: 10 }, () => postText(read, "{}"));
		socket.write([...watches, ...calls].join(""), "latin1");
		await metricReaches(address, inFlight, 10);
		await metricReaches(address, "plinth_streams_open", 3);
		socket.destroy();
		await metricReaches(address, inFlight, 0);
		await metricReaches(address, "plinth_streams_open", 0);
	});
});

describe("a request body that does not arrive", () => {
	it("ends the call after a minute over HTTP/2: 2,000 bodies of one byte block others no longer than that", async () => {
		const started = await start();
		const { address, clock } = started;
		const calls = [openSession(address), openSession(address)].flatMap((session) =>
			Array.from({ length: 1_000 }, () => post(session, read, "{", { isOpen: true })),
		);
		await metricReaches(address, inFlight, 2_000);
		expect(await readDefault(started)).toMatch(
			/the server has reached its limit of 2000 calls in flight/,
		);
		clock.advance(62_000);
		for (const { ended } of calls.slice(-10)) {
			// It responds, and ends the request when the client does not.
			while ((await metric(address, inFlight)) > 0) {
				await new Promise((resolve) => setTimeout(resolve, 10));
			}
			clock.advance(7_000);
			expect(await ended).toMatchObject({ rstCode: 0, status: "504" });
		}
		expect(await readDefault(started)).toBe("ok");
	});
});

describe("bytes of responses that wait", () => {
	it("beyond the total limit, the largest response is ended, and others are served", async () => {
		const started = await start({ limits: { pendingBytes: 24_000_000 } });
		const { address } = started;
		await storeLarge(started);
		const session = openSession(address, { initialWindowSize: 0 });
		const small = post(session, read, JSON.stringify({ id: {} }));
		await metricReaches(address, inFlight, 1);
		const hogs = await Promise.all(Array.from({ length: 3 }, () => openSocket(address)));
		for (const hog of hogs) {
			hog.write(postText(list, artists));
		}
		await metricReaches(address, cut, 2, 'why="pending_bytes"');
		expect(await metric(address, pending)).toBeLessThanOrEqual(24_000_000);
		expect(await readDefault(started)).toBe("ok");
		expect(small.stream.closed).toBe(false);
	});

	it("past the limit of a connection, what would add to them is reset", async () => {
		const started = await start({ limits: { pendingBytesPerConnection: 20_000_000 } });
		const { address } = started;
		await storeLarge(started);
		const session = openSession(address, { initialWindowSize: 0 });
		const first = post(session, list, artists);
		await metricReaches(address, inFlight, 1);
		const second = post(session, list, artists);
		expect((await second.ended).rstCode).toBe(enhanceYourCalm);
		expect(first.stream.closed).toBe(false);
		expect(await metric(address, cut, 'why="pending_bytes"')).toBe(1);
	});
});
