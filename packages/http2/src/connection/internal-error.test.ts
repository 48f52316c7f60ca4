import { describe, expect, it } from "vitest";
import { errorCode } from "../error-code.ts";
import { frameType } from "../frames/frame.ts";
import { frame, uint32 } from "../frames.fixture.ts";
import type { Http2Counters } from "../http2.ts";
import { plantBug } from "../planted-bug.fixture.ts";
import { RawClient, settle } from "../raw-client.fixture.ts";

const readBug = ["framesReceived", "resetsReceived", "bytesReceived", "readPauses"] as const;
const writeBug = ["socketWrites", "bytesSent"] as const;

/** A connection with an open stream and a response that waits for credit. */
async function connect(): Promise<RawClient> {
	const client = new RawClient({ limits: { maxBufferedBytes: 0 } });
	await client.send(client.headers(1, false), client.headers(3));
	client.request.stream.respond(200, []);
	client.request.stream.write(Buffer.alloc(100_000));
	await settle();
	return client;
}

const trigger = (client: RawClient) =>
	client.send(
		frame(frameType.ping, 0, 0, Buffer.alloc(8)),
		frame(frameType.rstStream, 0, 1, uint32(errorCode.cancel)),
	);

async function expectEnded(client: RawClient): Promise<void> {
	await settle();
	client.socket.end();
	expect(await client.connection.closed).toEqual({
		code: errorCode.internalError,
		message: "internal error",
	});
	expect(client.internalErrors.map(String)).toContain("Error: a bug");
	expect(client.errors).toEqual([]);
	expect(client.requests.map(({ events }) => events.at(-1))).toEqual([
		expect.stringMatching("^reset"),
		expect.stringMatching("^reset"),
	]);
	expect(client.connection.activeStreams).toBe(0);
	expect(client.connection.unsentBytes).toBe(0);
	expect(client.clock.nextTimerMs()).toBeUndefined();
}

describe("an internal error ends its connection, and nothing else,", () => {
	it.each<keyof Http2Counters>(readBug)("while it reads: %s", async (counter) => {
		const client = await connect();
		plantBug(client.connection, counter);
		await trigger(client);
		expect(client.goawayCode).toBe(errorCode.internalError);
		await expectEnded(client);
	});

	it.each<keyof Http2Counters>(writeBug)(
		"while it writes, which it then can't: %s",
		async (counter) => {
			const client = await connect();
			plantBug(client.connection, counter);
			await trigger(client);
			await expectEnded(client);
		},
	);

	it("in a timer", async () => {
		const client = await connect();
		plantBug(client.connection, "resetsSent");
		// The response that waits has stalled.
		client.clock.advance(120_000);
		await settle();
		expect(client.goawayCode).toBe(errorCode.internalError);
		await expectEnded(client);
	});

	it("while it ends", async () => {
		const client = await connect();
		plantBug(client.connection, "socketWrites");
		client.connection.goaway(errorCode.noError);
		client.socket.end();
		await settle();
		expect((await client.connection.closed).code).toBe(errorCode.noError);
		expect(client.internalErrors.map(String)).toContain("Error: a bug");
	});
});
