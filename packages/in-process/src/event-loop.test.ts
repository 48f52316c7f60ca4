import { ConnectError } from "@connectrpc/connect";
import { EventLoopScheduler } from "@plinth/runtime";
import { CountedEventLoop } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { ProbeService } from "../testdata/src/gen/probe_pb.ts";
import { createInProcessClient } from "./client.ts";
import { createInProcessTransport } from "./transport.ts";

/** The duration of a call or message in these tests, in milliseconds, and the longest work without an iteration. */
const workMs = 0.25;
const longestMs = 5 + 48 * workMs;

function start(loop: CountedEventLoop, shutdownSignal?: AbortSignal) {
	const handled: string[] = [];
	const transport = createInProcessTransport(
		(router) =>
			router.service(ProbeService, {
				async unary({ text }) {
					handled.push(text);
					// Some of the work is done after others have run.
					for (let step = 0; step < 10; step++) {
						await undefined;
						loop.work(workMs / 10);
					}
					return { text };
				},
				async *serverStream({ number }) {
					for (let sent = 0; sent < number; sent++) {
						loop.work(workMs);
						yield { number: sent };
					}
				},
			}),
		{
			scheduler: new EventLoopScheduler(loop),
			...(shutdownSignal && { shutdownSignal }),
		},
	);
	return { client: createInProcessClient(ProbeService, transport), handled };
}

type Client = ReturnType<typeof start>["client"];

const loads: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
	"a loop of calls": async (client) => {
		for (let call = 0; call < 1_000; call++) {
			await client.unary({});
		}
	},
	"sixteen loops of calls": (client) =>
		Promise.all(
			Array.from({ length: 16 }, async () => {
				for (let call = 0; call < 100; call++) {
					await client.unary({});
				}
			}),
		),
	"a thousand calls at once": (client) =>
		Promise.all(Array.from({ length: 1_000 }, () => client.unary({}))),
	"a long stream": async (client) => {
		for await (const { number } of client.serverStream({ number: 1_000 })) {
			expect(number).toBeLessThan(1_000);
		}
	},
};

describe.each(Object.entries(loads))("%s", (_name, load) => {
	it("lets the event loop run in between", async () => {
		const loop = new CountedEventLoop();
		await load(start(loop).client);
		expect(loop.longestMs).toBeLessThan(longestMs);
		expect(loop.iterations).toBeGreaterThan(10);
	});

	it("would be found to block it without a budget", async () => {
		const loop = new CountedEventLoop();
		loop.now = () => 0;
		await load(start(loop).client);
		expect(loop.longestMs).toBeGreaterThan(4 * longestMs);
	});
});

describe("calls that wait for the event loop", () => {
	it("reach the handler in the order in which they were made", async () => {
		const { client, handled } = start(new CountedEventLoop());
		const texts = Array.from({ length: 300 }, (_, at) => `${at}`);
		await Promise.all(texts.map((text) => client.unary({ text })));
		expect(handled).toEqual(texts);
	});

	it("fail at once when they are canceled, and never reach the handler", async () => {
		const { client, handled } = start(new CountedEventLoop());
		const others = Array.from({ length: 300 }, () => client.unary({}));
		const caller = new AbortController();
		const call = client.unary({ text: "canceled" }, { signal: caller.signal });
		let failedAfter = -1;
		const failed = call.catch(() => {
			failedAfter = handled.length;
		});
		caller.abort();
		await failed;
		await Promise.all(others);
		expect(failedAfter).toBeLessThan(300);
		expect(handled).not.toContain("canceled");
	});

	it("fail at once when the server stops, and leave nothing behind", async () => {
		const loop = new CountedEventLoop();
		const stop = new AbortController();
		const { client, handled } = start(loop, stop.signal);
		const calls = Array.from({ length: 300 }, () => client.unary({}));
		const outcomes = Promise.allSettled(calls);
		await calls[0];
		stop.abort();
		for (const outcome of (await outcomes).slice(100)) {
			expect(outcome.status === "rejected" && outcome.reason).toBeInstanceOf(ConnectError);
		}
		expect(handled.length).toBeLessThan(100);
	});

	it("do not slow down later ones when they have ended in any way", async () => {
		const loop = new CountedEventLoop();
		const { client } = start(loop);
		const canceled = Array.from({ length: 300 }, () => {
			const caller = new AbortController();
			const call = client.unary({}, { signal: caller.signal });
			caller.abort();
			return call;
		});
		await Promise.allSettled(canceled);
		await new Promise((resolve) => setImmediate(resolve));
		let ticks = 0;
		const { microtasksDone } = loop;
		loop.microtasksDone = (callback) => {
			ticks += 1;
			microtasksDone.call(loop, callback);
		};
		loop.nowMs += 100;
		for (let call = 0; call < 10; call++) {
			await client.unary({});
		}
		expect(ticks).toBe(0);
	});
});
