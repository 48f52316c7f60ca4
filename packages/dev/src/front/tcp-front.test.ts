import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { systemClock } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Address, TcpFront, type TcpFrontOptions } from "./tcp-front.ts";

const loopback = { host: "127.0.0.1", port: 0 };

/** A server behind a front. */
async function target(serve: (socket: Socket) => void): Promise<Address & { server: Server }> {
	const server = createServer({ allowHalfOpen: true }, (socket) => {
		socket.on("error", () => {});
		serve(socket);
	});
	server.listen(loopback);
	await once(server, "listening");
	onTestFinished(() => void server.close());
	const address = server.address();
	const port = typeof address === "object" && address !== null ? address.port : 0;
	return { host: "127.0.0.1", port, server };
}

async function openFront(options: Partial<TcpFrontOptions> = {}) {
	const front = new TcpFront({ clock: systemClock, waitMs: 60_000, waiting: 100, ...options });
	const address = await front.listen(loopback);
	onTestFinished(() => front.close());
	const dial = async () => {
		const socket = connect({ ...address, allowHalfOpen: true });
		socket.on("error", () => {});
		onTestFinished(() => void socket.destroy());
		await once(socket, "connect");
		return socket;
	};
	return { front, address, dial };
}

/** Echoes what it gets, in upper case, and ends when its client has ended. */
async function echo(name = ""): Promise<Address> {
	return target((socket) => {
		socket.setEncoding("utf8");
		socket.on("data", (data: string) => void socket.write(name + data.toUpperCase()));
		socket.on("end", () => void socket.end("."));
	});
}

describe("a TCP front", () => {
	it("passes bytes on in both directions, and an end of one side as an end of that side", async () => {
		const { front, dial } = await openFront();
		front.forward(await echo());
		const client = await dial();
		const reply = text(client);
		client.write("hello");
		client.end();
		expect(await reply).toBe("HELLO.");
		await expect.poll(() => front.connections).toBe(0);
	});

	it("lets connections wait, and passes on all that they have sent, to the next target", async () => {
		const { front, dial } = await openFront();
		const clients = await Promise.all([dial(), dial(), dial()]);
		const replies = clients.map((client) => text(client));
		for (const client of clients) {
			client.end("early");
		}
		await expect.poll(() => front.waiting).toBe(3);
		front.forward(await echo("b"));
		expect(await Promise.all(replies)).toEqual(["bEARLY.", "bEARLY.", "bEARLY."]);
	});

	it("keeps open connections at their target while new ones wait for the next", async () => {
		const { front, dial } = await openFront();
		front.forward(await echo("a"));
		const first = await dial();
		const [reply] = await Promise.all([once(first, "data"), first.write("x")]);
		expect(String(reply)).toBe("aX");
		front.hold();
		const second = await dial();
		const secondReply = text(second);
		second.end("y");
		await expect.poll(() => front.waiting).toBe(1);
		const rest = text(first);
		first.end("z");
		expect(await rest).toBe("aZ.");
		front.forward(await echo("b"));
		expect(await secondReply).toBe("bY.");
	});

	it("closes a connection that has waited for too long, and those that are too many", async () => {
		const clock = new FakeClock();
		const { front, address, dial } = await openFront({ clock, waitMs: 1_000, waiting: 2 });
		const [first, second] = [await dial(), await dial()];
		await expect.poll(() => front.waiting).toBe(2);
		const third = connect(address).on("error", () => {});
		await closed(third);
		const ends = [closed(first), closed(second)];
		await clock.advance(1_000);
		await Promise.all(ends);
		await expect.poll(() => front.waiting).toBe(0);
	});

	it("passes a reset on", async () => {
		const { front, dial } = await openFront();
		front.forward(
			await target((socket) => void socket.once("data", () => socket.resetAndDestroy())),
		);
		const client = await dial();
		const failed = new Promise((resolve) => client.once("error", resolve));
		client.write("x");
		expect(await failed).toMatchObject({ code: "ECONNRESET" });
		await expect.poll(() => front.connections).toBe(0);
	});

	it("ends the target's side when the client is gone", async () => {
		const { front, dial } = await openFront();
		const gone = Promise.withResolvers<void>();
		front.forward(
			await target((socket) => {
				socket.resume();
				socket.once("close", () => gone.resolve());
			}),
		);
		const client = await dial();
		client.write("x");
		client.resetAndDestroy();
		await gone.promise;
		await expect.poll(() => front.connections).toBe(0);
	});

	it("does not read more than the other side takes", async () => {
		const { front, dial } = await openFront();
		const stuck = Promise.withResolvers<Socket>();
		front.forward(await target((socket) => stuck.resolve(socket.pause())));
		const client = await dial();
		const chunk = Buffer.alloc(1024 * 1024, "x");
		let sent = 0;
		// Until all buffers on the way are full.
		while (client.write(chunk) || (await drained(client))) {
			sent += chunk.length;
			expect(sent).toBeLessThan(256 * chunk.length);
		}
		const server = await stuck.promise;
		const received = text(server);
		client.end();
		server.end();
		expect((await received).length).toBeGreaterThan(sent);
	});

	it("gives a connection that the old target refused to the next one", async () => {
		const { front, dial } = await openFront();
		const old = await target(() => {});
		old.server.close();
		front.forward({ host: old.host, port: old.port });
		const client = await dial();
		const reply = text(client);
		client.end("x");
		front.forward(await echo());
		expect(await reply).toBe("X.");
	});

	it("closes everything in the end", async () => {
		const { front, dial } = await openFront();
		front.forward(await echo());
		const forwarded = await dial();
		forwarded.write("x");
		await once(forwarded, "data");
		front.hold();
		const waiting = await dial();
		await expect.poll(() => front.waiting).toBe(1);
		const ends = [closed(forwarded), closed(waiting)];
		await front.close();
		await Promise.all(ends);
		expect(front.connections).toBe(0);
	});
});

/** Resolves once a connection is closed, in order or not. */
function closed(socket: Socket): Promise<void> {
	socket.resume().once("end", () => void socket.end());
	return new Promise((resolve) => socket.once("close", () => resolve()));
}

/** Whether what was written is taken before a while has passed. */
function drained(socket: Socket): Promise<boolean> {
	return Promise.race([
		once(socket, "drain").then(() => true),
		new Promise<boolean>((resolve) => {
			setTimeout(() => resolve(false), 200);
		}),
	]);
}
