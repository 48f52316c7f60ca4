import { constants } from "node:http2";
import { createConnection } from "node:net";
import { setImmediate as loopRound } from "node:timers/promises";
import { silentLogger, systemClock } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { expect, it, onTestFinished } from "vitest";
import { http2OfTests } from "../http2.fixture.ts";
import { healthChecks, type TurnTaker, unidentified } from "../limits/event-loop-turns.ts";
import { openSession, post } from "../raw-calls.fixture.ts";
import { Exchanges } from "./exchanges.ts";
import { defaultListenerLimits } from "./limits.ts";
import { openListener } from "./listener.ts";
import { pathOf, sendText } from "./request-handler.ts";
import { takeTurns } from "./take-turns.ts";

const limits = defaultListenerLimits;

/** A listener whose requests begin when the test says so. */
async function start({ isCrowded = false } = {}) {
	const clock = new FakeClock();
	const waiting: { readonly taker: TurnTaker; readonly proceed: () => void }[] = [];
	const begun: string[] = [];
	let refused = 0;
	const exchanges = new Exchanges({ clock: systemClock, logger: silentLogger, limits });
	const listener = await openListener({
		...http2OfTests(),
		address: { host: "127.0.0.1", port: 0 },
		limits,
		clock: systemClock,
		logger: silentLogger,
		handler: takeTurns(
			{
				turns: {
					run: (taker, proceed) => {
						waiting.push({ taker, proceed });
						return undefined;
					},
					isCrowded: () => isCrowded,
				},
				connectionOf: (request) => exchanges.connectionOf(request),
				waitingPerCaller: 10,
				clock,
				onRefused: () => {
					refused += 1;
				},
				onResponse: exchanges.beginPlain,
			},
			(request, response) => {
				begun.push(pathOf(request));
				const { connection } = exchanges.begin("plain", request, response);
				connection.caller = pathOf(request);
				sendText(response, 200, "done");
			},
		),
	});
	onTestFinished(() => listener.close(0));
	const { port } = listener.address;
	return {
		url: `http://127.0.0.1:${port}`,
		port,
		waiting,
		begun,
		refused: () => refused,
		connections: () => listener.connections,
		until: async (count: number) => {
			while (waiting.length < count) {
				await loopRound();
			}
		},
	};
}

it("requests start at their turn, as one caller until the first call is admitted, and then as its caller", async () => {
	const server = await start();
	const sessions = [openSession(server.url), openSession(server.url)] as const;
	const first = post(sessions[0], "/alice", "");
	await server.until(1);
	post(sessions[1], "/bob", "");
	await server.until(2);
	expect(server.begun).toEqual([]);
	const [alice, bob] = server.waiting;
	expect(alice?.taker.caller).toBe(bob?.taker.caller);
	expect(alice?.taker.connection).not.toBe(bob?.taker.connection);
	alice?.proceed();
	expect(await first.ended).toMatchObject({ status: "200", body: "done\n" });
	post(sessions[0], "/again", "");
	await server.until(3);
	expect(server.waiting[2]?.taker.caller).toBe("/alice");
	expect(server.begun).toEqual(["/alice"]);
});

it.each(["/healthz", "/readyz", "/grpc.health.v1.Health/Check"])(
	"%s counts as a health check",
	async (path) => {
		const server = await start();
		for (const each of [1, 2]) {
			post(openSession(server.url), path, "");
			await server.until(each);
			expect(server.waiting.at(-1)?.taker.caller).toBe(healthChecks);
		}
		post(openSession(server.url), `/other${path}`, "");
		await server.until(3);
		expect(server.waiting.at(-1)?.taker.caller).toBe(unidentified);
	},
);

it("a connection whose requests keep being refused is closed", async () => {
	const server = await start({ isCrowded: true });
	const session = openSession(server.url);
	const closed = new Promise((resolve) => session.once("close", resolve));
	for (let call = 0; call < 1_100; call += 1) {
		const { ended } = post(session, "/refused", "");
		if (call % 100 === 0) {
			await Promise.race([ended, closed]);
		}
	}
	await closed;
	expect(server.refused()).toBeGreaterThan(1_024);
});

it("a request whose client is gone before its turn never starts", async () => {
	const server = await start();
	const session = openSession(server.url);
	const reset = post(session, "/reset", "");
	await server.until(1);
	reset.stream.close(constants.NGHTTP2_CANCEL);
	const socket = createConnection(server.port, "127.0.0.1");
	socket.write("POST /cut HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\n");
	await server.until(2);
	socket.destroy();
	while (server.connections() > 1) {
		await loopRound();
	}
	// On the same connection as the reset, and after it.
	const after = post(session, "/after", "");
	await server.until(3);
	server.waiting[2]?.proceed();
	await after.ended;
	server.waiting[0]?.proceed();
	server.waiting[1]?.proceed();
	expect(server.begun).toEqual(["/after"]);
});

it("a request is refused if too many wait: with a retryable stream reset, or over HTTP/1.1 with 429", async () => {
	const server = await start({ isCrowded: true });
	const { rstCode } = await post(openSession(server.url), "/refused", "").ended;
	expect(rstCode).toBe(constants.NGHTTP2_REFUSED_STREAM);
	const response = await fetch(`${server.url}/refused`, { method: "POST" });
	expect(response.status).toBe(429);
	expect(await response.text()).toMatch(/too many requests are waiting/);
	expect(server.refused()).toBe(2);
	expect(server.waiting).toEqual([]);
});
