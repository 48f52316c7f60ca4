/** Hostile clients against Plinth's own framing. Afterwards nothing is left of them. */
import { once } from "node:events";
import { type ClientHttp2Session, constants, type OutgoingHttpHeaders } from "node:http2";
import type { Random } from "@plinth/runtime";
import { seededRandom } from "@plinth/runtime/testing";
import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { openSession, post } from "../../raw-calls.fixture.ts";
import { type StartedListener, startListener } from "../../started-listener.fixture.ts";
import { echoRouter } from "../echo-router.fixture.ts";

const read = "/plinth.resource.v1.ResourceService/Read";
const write = "/plinth.resource.v1.ResourceService/Write";
const watch = "/plinth.resource.v1.ResourceService/WatchList";

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

const requests: readonly OutgoingHttpHeaders[] = [
	...[read, write, watch].flatMap((path) => [
		{ ":method": "POST", ":path": path, "content-type": "application/json" },
		{ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" },
		{ ":method": "POST", ":path": path, "content-type": "application/connect+json" },
		{ ":method": "HEAD", ":path": path },
		{ ":method": "POST", ":path": path, "content-length": "3", "content-type": "application/json" },
	]),
	{ ":method": "GET", ":path": "/nowhere" },
	{ ":method": "HEAD", ":path": "/nowhere" },
	{ ":method": "OPTIONS", ":path": "*" },
	{ ":method": "BREW", ":path": "/", expect: "100-continue" },
	{ ":method": "POST", ":path": "/", expect: "cake" },
	{ ":method": "CONNECT", ":authority": "localhost:1" },
	{ ":method": "GET", ":path": "/", "x-large": "x".repeat(20_000) },
];

/** Begins a request, and resets, ends or abandons it at some time. */
function misbehave(random: Random, session: ClientHttp2Session): void {
	const below = (limit: number) => Math.floor(random.next() * limit);
	if (session.destroyed) {
		return;
	}
	const stream = session.request(requests[below(requests.length)], { endStream: false });
	stream.on("error", () => {});
	if (below(3) > 0) {
		stream.resume();
	}
	const reset = () =>
		stream.close(below(2) === 0 ? constants.NGHTTP2_CANCEL : constants.NGHTTP2_NO_ERROR);
	const actions = [
		() => stream.write(below(2) === 0 ? "{}" : Buffer.alloc(below(70_000))),
		() => stream.end(),
		() => stream.end("{}"),
		reset,
		() => setImmediate(reset),
		() => setTimeout(reset, below(10)),
		() => session.ping(() => {}),
		() => session.settings({ initialWindowSize: below(70_000) }),
		() => {},
	];
	for (let count = below(4); count > 0; count -= 1) {
		if (!session.destroyed && !stream.destroyed && !stream.writableEnded) {
			actions[below(actions.length)]?.();
		}
	}
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

describe("connections that break off", () => {
	it("leave nothing of requests that were reset, ended or abandoned at any time", () =>
		forEachSeed(2, async (seed) => {
			const random = seededRandom(seed);
			const release = Promise.withResolvers<void>();
			const listener = await startListener(echoRouter({}, release.promise));
			const sessions = Array.from({ length: 4 }, (_, index) =>
				openSession(listener.address, { initialWindowSize: index % 2 === 0 ? 0 : 65_535 }),
			);
			for (let step = 0; step < 300; step += 1) {
				for (const session of sessions) {
					misbehave(random, session);
				}
				if (step % 20 === 0) {
					await new Promise((resolve) => setTimeout(resolve, 1));
				}
			}
			release.resolve();
			for (const session of sessions) {
				session.destroy();
			}
			await expectUnharmed(listener);
		}));
});
