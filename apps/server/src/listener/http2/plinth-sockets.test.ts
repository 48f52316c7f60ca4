/** Sockets that split, end or break off anywhere, against Plinth's own framing. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { seededRandom } from "@plinth/runtime/testing";
import { afterAll, describe, expect, it, vi } from "vitest";
import { createAuthority } from "../../certificates.fixture.ts";
import { openSession, openSocket, post } from "../../raw-calls.fixture.ts";
import { type StartedListener, startListener } from "../../started-listener.fixture.ts";
import { echoRouter } from "../echo-router.fixture.ts";
import { recordCalls, tapSession } from "./tapped-session.fixture.ts";

const read = "/plinth.resource.v1.ResourceService/Read";
const write = "/plinth.resource.v1.ResourceService/Write";
const small = '{"id":{"name":"a"}}';

afterAll(() => {
	vi.restoreAllMocks();
});

/** Resolves when the condition holds, after any number of iterations of the event loop. */
async function until(condition: () => boolean): Promise<void> {
	while (!condition()) {
		await new Promise((resolve) => setImmediate(resolve));
	}
}

/** Nothing is left of what was attacked, and a call succeeds. */
async function expectUnharmed({ address, exchanges }: StartedListener): Promise<void> {
	await until(() => exchanges.open === 0);
	expect(exchanges.pendingBytes).toBe(0);
	expect((await post(openSession(address), read, "{}").ended).status).toBe("200");
}

/** A connection that reads nothing of responses of 12 MB. */
async function openUnread({ address, exchanges }: StartedListener): Promise<Socket> {
	const body = JSON.stringify({ id: { name: "x".repeat(60_000) } });
	const calls = await recordCalls(address, read, Array<string>(200).fill(body));
	const socket = await openSocket(address);
	socket.write(calls);
	await until(() => exchanges.pendingBytes > 1_000_000);
	return socket;
}

describe("TLS records", () => {
	it.each<[string, (random: () => number) => number]>([
		["of one byte each", () => 1],
		["that split frames anywhere", (random) => 1 + Math.floor(random() * 40)],
	])("%s are served", async (_, size) => {
		const tls = await (await createAuthority()).issue();
		const { address } = await startListener(echoRouter({}), { tls });
		const socket = connectTls({
			port: Number(new URL(address).port),
			...{ host: "127.0.0.1", ALPNProtocols: ["h2"], rejectUnauthorized: false },
		});
		await once(socket, "secureConnect");
		const random = seededRandom(1);
		// Each write is a record.
		const session = tapSession(address, socket, (bytes) => {
			for (let start = 0; start < bytes.length; ) {
				const end = start + size(() => random.next());
				socket.write(bytes.subarray(start, end));
				start = end;
			}
		});
		for (const name of ["a", "b".repeat(5_000)]) {
			const { status, body } = await post(session, read, JSON.stringify({ id: { name } })).ended;
			expect([status, body]).toEqual(["200", JSON.stringify({ resource: { id: { name } } })]);
		}
	});
});

describe("a client that leaves after any byte", () => {
	it.each<[string, (socket: Socket) => void]>([
		["ends its side", (socket) => socket.end()],
		["resets the connection", (socket) => socket.resetAndDestroy()],
	])("and %s leaves nothing behind", async (_, leave) => {
		const listener = await startListener(echoRouter({}));
		const calls = await recordCalls(listener.address, read, [small, small]);
		const lengths = Array.from({ length: calls.length }, (_, index) => index + 1);
		await Promise.all(
			lengths.map(async (length) => {
				const socket = connect(Number(new URL(listener.address).port), "127.0.0.1");
				socket.on("error", () => {});
				socket.resume();
				await once(socket, "connect");
				const closed = new Promise((resolve) => socket.once("close", resolve));
				socket.write(calls.subarray(0, length), () => leave(socket));
				await closed;
			}),
		);
		await expectUnharmed(listener);
	});
});

describe("a client that reads nothing", () => {
	it("and resets its connection in the middle of a write leaves nothing behind", async () => {
		const listener = await startListener(echoRouter({}));
		const socket = await openUnread(listener);
		socket.resetAndDestroy();
		await expectUnharmed(listener);
	});

	it("does not keep a listener from closing, within the limit of its calls", async () => {
		const listener = await startListener(echoRouter({}));
		const socket = await openUnread(listener);
		await listener.close(300);
		await until(() => listener.exchanges.open === 0);
		expect(listener.exchanges.pendingBytes).toBe(0);
		socket.destroy();
	});

	it("and has no calls does not keep a listener from closing, with no limit", async () => {
		const listener = await startListener(echoRouter({}));
		const calls = await recordCalls(listener.address, read, [small]);
		const socket = await openSocket(listener.address);
		// After the call, a part of the header of a frame.
		socket.write(Buffer.concat([calls, Buffer.alloc(5)]));
		socket.resume();
		for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
			if (String(chunk).includes("resource")) {
				break;
			}
		}
		socket.pause();
		await listener.close(Number.POSITIVE_INFINITY);
		expect(listener.exchanges.open).toBe(0);
	});
});

describe("a wall clock that jumps", () => {
	it.each([365, -365])("by %d days ends neither calls nor connections", async (days) => {
		const release = Promise.withResolvers<void>();
		const { address, exchanges } = await startListener(echoRouter({}, release.promise));
		const session = openSession(address);
		const waiting = post(session, write, "{}", { headers: { "connect-timeout-ms": "60000" } });
		await until(() => exchanges.open === 1);
		const now = Date.now.bind(Date);
		vi.spyOn(Date, "now").mockImplementation(() => now() + days * 24 * 60 * 60_000);
		expect((await post(session, read, small).ended).status).toBe("200");
		release.resolve();
		expect((await waiting.ended).status).toBe("200");
		expect(session.closed).toBe(false);
		vi.restoreAllMocks();
	});
});
