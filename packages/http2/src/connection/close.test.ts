import { describe, expect, it } from "vitest";
import { errorCode } from "../error-code.ts";
import { flag, frameType } from "../frames/frame.ts";
import { frame } from "../frames.fixture.ts";
import { RawClient, settle } from "../raw-client.fixture.ts";

const { data, goaway, ping } = frameType;

describe("the end of a connection", () => {
	it("in order: all requests that were on their way are served", async () => {
		const client = new RawClient();
		await client.send(client.headers(1));
		const closed = client.connection.close();
		await settle();
		expect(client.of(goaway).map(({ payload }) => payload.readUInt32BE())).toEqual([2 ** 31 - 1]);
		await client.send(client.headers(3));
		const [{ payload } = { payload: Buffer.alloc(8) }] = client.of(ping);
		await client.send(frame(ping, flag.ack, 0, payload));
		expect(client.of(goaway).at(-1)?.payload.readUInt32BE()).toBe(3);
		await client.send(client.headers(5, false), frame(data, flag.endStream, 5, Buffer.alloc(9)));
		expect(client.requests).toHaveLength(2);
		client.requests[0]?.stream.respond(200, [], true);
		await settle();
		expect(client.isEnded).toBe(false);
		client.requests[1]?.stream.respond(200, []);
		client.requests[1]?.stream.end(Buffer.from("last"));
		await settle();
		expect(client.isEnded).toBe(true);
		expect(client.of(data, 3)[0]?.payload.toString()).toBe("last");
		client.socket.end();
		expect(await closed).toEqual({ code: errorCode.noError, message: "" });
		expect(client.requests.map(({ events }) => events.at(-1))).toEqual(["finish", "finish"]);
	});

	it("in order, of a client that acknowledges nothing", async () => {
		const client = new RawClient();
		await client.send(client.headers(1));
		const closed = client.connection.close();
		client.clock.advance(2_000);
		await settle();
		expect(client.of(goaway).at(-1)?.payload.readUInt32BE()).toBe(1);
		client.request.stream.respond(200, [], true);
		await settle();
		client.clock.advance(2_000);
		expect((await closed).code).toBe(errorCode.noError);
	});

	it("in order, although too many pings wait", async () => {
		const client = new RawClient();
		await settle();
		const pings = Promise.allSettled(Array.from({ length: 16 }, () => client.connection.ping()));
		const closed = client.connection.close();
		client.clock.advance(2_000);
		await settle();
		expect(client.isEnded).toBe(true);
		client.socket.end();
		expect((await closed).code).toBe(errorCode.noError);
		await pings;
		expect(client.clock.nextTimerMs()).toBeUndefined();
	});

	it("at once: streams are reset, and handlers are notified", async () => {
		const client = new RawClient();
		await client.send(client.headers(1), client.headers(3));
		client.requests[0]?.stream.respond(200, [], true);
		client.connection.destroy(errorCode.internalError);
		await settle();
		expect(client.goawayCode).toBe(errorCode.internalError);
		expect(client.requests.map(({ events }) => events)).toEqual([
			["end", "reset 2 connection"],
			["end", "reset 2 connection"],
		]);
		client.request.stream.respond(200, []);
		client.request.stream.end(Buffer.alloc(10));
		await settle();
		expect(client.of(data)).toEqual([]);
	});

	it("by the client", async () => {
		const client = new RawClient();
		await client.send(client.headers(1));
		const pinged = expect(client.connection.ping()).rejects.toThrow("closed");
		client.socket.end();
		await pinged;
		await settle();
		expect(client.request.events).toEqual(["end", "reset 0 connection"]);
		expect(await client.connection.closed).toEqual({ code: 0, message: "" });
		await expect(client.connection.ping()).rejects.toThrow("closed");
	});

	it("by a broken socket", async () => {
		const client = new RawClient();
		await client.send(client.headers(1));
		client.serverSocket.destroy(new Error("broken pipe"));
		expect((await client.connection.closed).message).toBe("broken pipe");
		expect(client.request.events.at(-1)).toBe("reset 0 connection");
	});

	it("drops requests above the last one of a GOAWAY", async () => {
		const client = new RawClient();
		await client.send(client.headers(1));
		client.connection.goaway(errorCode.noError);
		await client.send(client.headers(3));
		expect(client.requests).toHaveLength(1);
		client.connection.goaway(errorCode.noError, 100);
		await settle();
		expect(client.of(goaway).map(({ payload }) => payload.readUInt32BE())).toEqual([1, 1]);
	});
});

describe("pings of the server", () => {
	it("measure the round trip", async () => {
		const client = new RawClient();
		const pinged = client.connection.ping();
		await settle();
		client.clock.advance(7);
		const [{ payload } = { payload: Buffer.alloc(8) }] = client.of(ping);
		await client.send(
			frame(ping, flag.ack, 0, Buffer.alloc(8, 9)),
			frame(ping, flag.ack, 0, payload),
		);
		expect(await pinged).toBe(7);
	});

	it("are limited", async () => {
		const client = new RawClient();
		const pings = Array.from({ length: 17 }, () => client.connection.ping());
		await expect(pings[16]).rejects.toThrow("16 pings");
		client.connection.destroy();
		await expect(Promise.allSettled(pings)).resolves.toHaveLength(17);
	});
});

describe("handlers", () => {
	it("whose methods throw reset their stream, and nothing else", async () => {
		const failing = (name: string) => () => {
			throw new Error(name);
		};
		const names = ["start", "onData", "onEnd", "onReset"];
		const client = new RawClient({
			onRequest: ({ id }) => {
				const name = names[(id - 1) / 2] ?? "";
				if (name === "start") {
					throw new Error(name);
				}
				const silent = { onData: () => {}, onEnd: () => {}, onReset: () => {} };
				return { ...silent, [name]: failing(name) };
			},
		});
		for (const id of [1, 3, 5, 7]) {
			await client.send(
				client.headers(id, false),
				frame(data, flag.endStream, id, Buffer.alloc(1)),
			);
		}
		expect([1, 3, 5, 7].map((id) => client.resetCode(id))).toEqual([2, 2, 2, undefined]);
		expect(client.goawayCode).toBeUndefined();
		client.connection.destroy();
		expect(client.errors.map(String)).toEqual(names.map((name) => `Error: ${name}`));
	});

	it("are refused wrong calls", async () => {
		const client = new RawClient();
		await client.send(client.headers(1));
		const { stream } = client.request;
		expect(() => stream.write(Buffer.alloc(1))).toThrow("needs a response first");
		expect(() => stream.respond(100, [])).toThrow("status");
		expect(() => stream.respond(200, ["a"])).toThrow("pairs");
		expect(() => stream.respond(200, ["A", "b"])).toThrow("name");
		expect(() => stream.respond(200, ["a", "b\r\n"])).toThrow("value");
		expect(() => stream.respond(200, ["a", "\u{1f600}"])).toThrow("Latin-1");
		expect(() => stream.respond(200, [":status", "200"])).toThrow("name");
		stream.respond(200, []);
		expect(() => stream.respond(200, [])).toThrow("already");
		expect(() => stream.end(undefined, ["te", "gzip"])).toThrow("te");
		stream.end();
		expect(() => stream.end()).toThrow("ended");
	});
});
