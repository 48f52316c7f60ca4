/** Hostile clients, in raw frames, against Plinth's own framing. Afterwards nothing is left of them. */
import { once } from "node:events";
import { constants } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSession, post } from "../../raw-calls.fixture.ts";
import { type StartedListener, startListener } from "../../started-listener.fixture.ts";
import { echoRouter } from "../echo-router.fixture.ts";

const read = "/plinth.resource.v1.ResourceService/Read";

beforeAll(() => {
	process.env.PLINTH_HTTP2 = "plinth";
});

afterAll(() => {
	delete process.env.PLINTH_HTTP2;
});

/** Resolves when the condition holds, after any number of turns of the event loop. */
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

describe("requests that no handler provides for", () => {
	it.each([
		["CONNECT", { ":method": "CONNECT", ":authority": "localhost:1" }, 405],
		["an unknown expectation", { ":method": "POST", ":path": "/", expect: "cake" }, 417],
	])(
		"with %s are ended like others when their clients do not end them",
		async (_, head, status) => {
			const listener = await startListener(echoRouter({}));
			const session = openSession(listener.address);
			const stream = session.request(head, { endStream: false });
			stream.on("error", () => {});
			stream.write("more");
			const [headers] = await once(stream, "response");
			expect(headers[":status"]).toBe(status);
			stream.resume();
			await until(() => listener.exchanges.open === 1);
			const closed = once(stream, "close");
			for (let second = 0; second < 7; second += 1) {
				listener.clock.advance(1_000);
			}
			await closed;
			expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
			await expectUnharmed(listener);
		},
	);
});
