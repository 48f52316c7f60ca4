import { getEventListeners } from "node:events";
import { create } from "@bufbuild/protobuf";
import {
	Code,
	ConnectError,
	type ConnectRouter,
	createClient,
	type Interceptor,
	type ServiceImpl,
} from "@connectrpc/connect";
import { systemScheduler } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
	type Ping,
	PingSchema,
	type Pong,
	PongSchema,
	ProbeService,
} from "../testdata/src/gen/probe_pb.ts";
import { createInProcessClient } from "./client.ts";
import {
	abortOf,
	caught,
	codeOf,
	drained,
	errorOf,
	forever,
	happening,
	seen,
	texts,
	textsOf,
} from "./conformance/behavior.fixture.ts";
import type { InProcessTransportOptions } from "./options.ts";
import { createInProcessTransport } from "./transport.ts";

function transportTo(
	handlers: Partial<ServiceImpl<typeof ProbeService>>,
	options?: InProcessTransportOptions,
) {
	const routes = (router: ConnectRouter) => {
		router.service(ProbeService, handlers);
	};
	return createInProcessTransport(routes, options);
}

function clientOf(
	handlers: Partial<ServiceImpl<typeof ProbeService>>,
	options?: InProcessTransportOptions,
) {
	return createInProcessClient(ProbeService, transportTo(handlers, options));
}

/** Echoes requests, on both kinds of methods. */
const echoing: Partial<ServiceImpl<typeof ProbeService>> = {
	unary: ({ text }) => ({ text }),
	async *serverStream({ text }) {
		yield { text };
	},
};

/** Makes a call of each supported kind, with the same options. */
async function callAll(client: ReturnType<typeof clientOf>, options?: object): Promise<void> {
	await client.unary({ text: "u" }, options);
	await drained(client.serverStream({ text: "s" }, options));
}

describe("messages", () => {
	it("are the very objects that were passed, in a unary call", async () => {
		const ping = Object.freeze(create(PingSchema, { nested: { tags: ["a"] } }));
		const pong = Object.freeze(create(PongSchema, { nested: { tags: ["b"] } }));
		let got: Ping | undefined;
		const client = clientOf({
			unary: (request) => {
				got = request;
				return pong;
			},
		});
		expect(await client.unary(ping)).toBe(pong);
		expect(got).toBe(ping);
	});

	it("are the very objects that were passed, in a server stream", async () => {
		const ping = create(PingSchema, { text: "1" });
		const pongs = [create(PongSchema, { text: "1" }), create(PongSchema, { text: "2" })];
		let got: Ping | undefined;
		const client = clientOf({
			async *serverStream(request) {
				got = request;
				yield* pongs;
			},
		});
		const read: Pong[] = [];
		for await (const pong of client.serverStream(ping)) {
			read.push(pong);
		}
		expect(got).toBe(ping);
		expect(read).toHaveLength(2);
		expect(read.every((pong, index) => pong === pongs[index])).toBe(true);
	});

	it("are the very objects behind interceptors that leave them alone", async () => {
		const ping = create(PingSchema);
		const pong = create(PongSchema);
		let got: Ping | undefined;
		const client = clientOf(
			{
				unary: (request) => {
					got = request;
					return pong;
				},
			},
			{
				interceptors: [(next) => (request) => next({ ...request })],
				router: { interceptors: [(next) => (request) => next({ ...request })] },
			},
		);
		expect(await client.unary(ping)).toBe(pong);
		expect(got).toBe(ping);
	});
});

describe("what a call does not use", () => {
	afterEach(() => {
		vi.unstubAllGlobals();
	});

	/** Counts how many headers and abort controllers are created from now on. */
	function counting() {
		const counts = { headers: 0, controllers: 0 };
		vi.stubGlobal(
			"Headers",
			class extends Headers {
				constructor(init?: ConstructorParameters<typeof Headers>[0]) {
					super(init);
					counts.headers += 1;
				}
			},
		);
		vi.stubGlobal(
			"AbortController",
			class extends AbortController {
				constructor() {
					super();
					counts.controllers += 1;
				}
			},
		);
		return counts;
	}

	it("is not made: no headers, no signals, no timers", async () => {
		const clock = new FakeClock();
		const setTimer = vi.spyOn(clock, "setTimer");
		const client = clientOf(echoing, { clock });
		const counts = counting();
		await callAll(client);
		expect(counts).toEqual({ headers: 0, controllers: 0 });
		expect(setTimer).not.toHaveBeenCalled();
	});

	it("is not made though other parts are used", async () => {
		const { signal } = new AbortController();
		const client = clientOf({
			unary: (_, context) => {
				context.responseTrailer.set("x-trail", "t");
				return {};
			},
		});
		const counts = counting();
		await client.unary({}, { signal });
		// The trailers, and the caller's copy of them.
		expect(counts).toEqual({ headers: 2, controllers: 0 });
	});

	it("is made once when it is touched twice", async () => {
		const same: boolean[] = [];
		const client = clientOf({
			unary: (_, context) => {
				const touched = [context.signal, context.requestHeader, context.values];
				const again = [context.signal, context.requestHeader, context.values];
				same.push(...touched.map((part, index) => part === again[index]));
				return {};
			},
		});
		const counts = counting();
		await client.unary({});
		expect(same).toEqual([true, true, true]);
		expect(counts).toEqual({ headers: 1, controllers: 1 });
	});

	it("includes the interceptors' signal", async () => {
		const client = clientOf(echoing, {
			interceptors: [(next) => (request) => next(request)],
			router: { interceptors: [(next) => (request) => next(request)] },
		});
		const counts = counting();
		await callAll(client);
		expect(counts.controllers).toBe(0);
	});
});

describe("back-pressure", () => {
	it("pulls a handler's stream when its reader asks, the first message with the call", async () => {
		let pulled = 0;
		const transport = transportTo({
			async *serverStream() {
				for (;;) {
					pulled += 1;
					yield {};
				}
			},
		});
		const method = ProbeService.method.serverStream;
		const response = await transport.stream(method, undefined, undefined, undefined, texts("q"));
		const reader = response.message[Symbol.asyncIterator]();
		const counts = [pulled];
		for (let read = 0; read < 4; read++) {
			await reader.next();
			await new Promise(setImmediate);
			counts.push(pulled);
		}
		await reader.return?.();
		expect(counts).toEqual([1, 1, 2, 3, 4]);
	});
});

describe("signals that outlive their calls", () => {
	it("have one listener however many calls are open, and none when all are over", async () => {
		const { signal } = new AbortController();
		const shutdown = new AbortController();
		const release = happening();
		const client = clientOf(
			{
				unary: async () => {
					await release.promise;
					return {};
				},
			},
			{ shutdownSignal: shutdown.signal },
		);
		const calls = Array.from({ length: 100 }, () => client.unary({}, { signal }));
		const whileOpen = [signal, shutdown.signal].map(
			(long) => getEventListeners(long, "abort").length,
		);
		release.resolve();
		await Promise.all(calls);
		expect(whileOpen).toEqual([1, 1]);
		expect(getEventListeners(signal, "abort")).toEqual([]);
		expect(getEventListeners(shutdown.signal, "abort")).toEqual([]);
	});

	it.each([
		["without interceptors", false],
		["with an interceptor that looks at the signal", true],
	])("keep nothing of 10,000 calls %s, however they end", async (_, isIntercepted) => {
		const clock = new FakeClock();
		const { signal } = new AbortController();
		const shutdown = new AbortController();
		let aborted = 0;
		const looking: Interceptor = (next) => (request) => {
			aborted += request.signal.aborted ? 1 : 0;
			return next(request);
		};
		const client = clientOf(
			{
				...echoing,
				unary: ({ text }, context) => {
					context.signal.addEventListener("abort", () => {});
					if (text === "fail") {
						throw new ConnectError("as planned", Code.Aborted);
					}
					return {};
				},
			},
			{
				clock,
				shutdownSignal: shutdown.signal,
				interceptors: isIntercepted ? [looking] : [],
			},
		);
		const options = { signal, timeoutMs: 1_000 };
		for (let round = 0; round < 2_000; round++) {
			await callAll(client, options);
			await errorOf(client.unary({ text: "fail" }, options));
		}
		expect(aborted).toBe(0);
		expect(getEventListeners(signal, "abort")).toEqual([]);
		expect(getEventListeners(shutdown.signal, "abort")).toEqual([]);
		expect(clock.nextTimerMs()).toBeUndefined();
	});

	it("keep nothing of calls that a signal, a deadline or a reader ended", async () => {
		const clock = new FakeClock();
		const shutdown = new AbortController();
		const transport = transportTo(
			{
				unary: () => forever(),
				async *serverStream() {
					yield {};
					await forever();
				},
			},
			{ clock, shutdownSignal: shutdown.signal },
		);
		const client = createClient(ProbeService, transport);
		const one = new AbortController();
		const { signal } = new AbortController();
		const outcomes = [
			errorOf(client.unary({}, { signal: one.signal, timeoutMs: 5 })),
			errorOf(drained(client.serverStream({}, { signal: one.signal, timeoutMs: 5 }))),
			errorOf(client.unary({}, { signal, timeoutMs: 10 })),
			errorOf(drained(client.serverStream({}, { signal, timeoutMs: 10 }))),
		];
		const method = ProbeService.method.serverStream;
		const response = await transport.stream(method, signal, 20, undefined, texts("q"));
		await response.message[Symbol.asyncIterator]().return?.();
		one.abort();
		await clock.advanceAsync(10);
		expect(await Promise.all(outcomes)).toEqual([
			"Canceled: This operation was aborted",
			"Canceled: This operation was aborted",
			"DeadlineExceeded: the operation timed out",
			"DeadlineExceeded: the operation timed out",
		]);
		for (const long of [signal, one.signal, shutdown.signal]) {
			expect(getEventListeners(long, "abort")).toEqual([]);
		}
		expect(clock.nextTimerMs()).toBeUndefined();
	});
});

describe("a deadline", () => {
	it("passes on the given clock, and tells the handler why", async () => {
		const clock = new FakeClock();
		const reason = happening<unknown>();
		const client = clientOf(
			{
				unary: (_, { signal }) => {
					void abortOf(signal).then(reason.resolve);
					return forever();
				},
			},
			{ clock },
		);
		let isSettled = false;
		const call = errorOf(client.unary({}, { timeoutMs: 1_000 })).finally(() => {
			isSettled = true;
		});
		await clock.advanceAsync(999);
		expect(isSettled).toBe(false);
		await clock.advanceAsync(1);
		expect(await call).toBe("DeadlineExceeded: the operation timed out");
		expect(seen(await reason.promise)).toBe("DeadlineExceeded: the operation timed out");
	});

	it("is counted down for the handler on the given clock", async () => {
		const clock = new FakeClock();
		const left: (number | undefined)[] = [];
		const client = clientOf(
			{
				unary: (_, { timeoutMs }) => {
					left.push(timeoutMs());
					clock.advance(300);
					left.push(timeoutMs());
					return {};
				},
			},
			{ clock },
		);
		await client.unary({}, { timeoutMs: 1_000 });
		expect(left).toEqual([1_000, 700]);
	});

	it("includes the time that interceptors take", async () => {
		const clock = new FakeClock();
		const client = clientOf(
			{ unary: (_, { timeoutMs }) => ({ text: `${timeoutMs()}` }) },
			{
				clock,
				interceptors: [
					(next) => (request) => {
						clock.advance(400);
						return next(request);
					},
				],
			},
		);
		expect((await client.unary({}, { timeoutMs: 1_000 })).text).toBe("600");
	});
});

describe("cancellation", () => {
	it("reaches the caller first and the handler after a hop", async () => {
		const tasks: (() => void)[] = [];
		const client = clientOf(
			{
				unary: (_, { signal }) => {
					signal.addEventListener("abort", () => order.push("handler"));
					return forever();
				},
			},
			{ scheduler: { schedule: (task) => tasks.push(task), turn: () => undefined } },
		);
		const order: string[] = [];
		const controller = new AbortController();
		const call = errorOf(client.unary({}, { signal: controller.signal }));
		tasks.shift()?.();
		controller.abort();
		await call;
		order.push("caller");
		expect(tasks).toHaveLength(1);
		tasks.shift()?.();
		expect(order).toEqual(["caller", "handler"]);
	});

	it("overtakes a call that has not reached its handler", async () => {
		let ran = false;
		const client = clientOf({
			unary: () => {
				ran = true;
				return {};
			},
			async *serverStream() {
				ran = true;
				yield {};
			},
		});
		const controller = new AbortController();
		const unary = errorOf(client.unary({}, { signal: controller.signal }));
		const stream = errorOf(drained(client.serverStream({}, { signal: controller.signal })));
		controller.abort();
		await Promise.all([unary, stream]);
		await new Promise(setImmediate);
		expect(ran).toBe(false);
	});

	it("drops a response in flight", async () => {
		const tasks: (() => void)[] = [];
		const client = clientOf(
			{ unary: () => ({ text: "too late" }) },
			{ scheduler: { schedule: (task) => tasks.push(task), turn: () => undefined } },
		);
		const controller = new AbortController();
		const call = errorOf(client.unary({}, { signal: controller.signal }));
		tasks.shift()?.();
		await vi.waitUntil(() => tasks.length > 0, { timeout: 300_000 });
		controller.abort();
		for (const task of tasks) {
			task();
		}
		expect(await call).toBe("Canceled: This operation was aborted");
	});

	it("follows a reader's return, which ends the handler's stream", async () => {
		const cleaned = happening<boolean>();
		const transport = transportTo({
			async *serverStream(_, { signal }) {
				try {
					for (;;) {
						yield {};
					}
				} finally {
					cleaned.resolve(signal.aborted);
				}
			},
		});
		const method = ProbeService.method.serverStream;
		const response = await transport.stream(method, undefined, undefined, undefined, texts("q"));
		for await (const _ of response.message) {
			break;
		}
		expect(await cleaned.promise).toBe(true);
	});

	it("follows a reader's return behind interceptors too", async () => {
		const cleaned = happening<boolean>();
		const transport = transportTo(
			{
				async *serverStream(_, { signal }) {
					try {
						for (;;) {
							yield {};
						}
					} finally {
						cleaned.resolve(signal.aborted);
					}
				},
			},
			{
				interceptors: [(next) => (request) => next(request)],
				router: { interceptors: [(next) => (request) => next(request)] },
			},
		);
		const method = ProbeService.method.serverStream;
		const response = await transport.stream(method, undefined, undefined, undefined, texts("q"));
		for await (const _ of response.message) {
			break;
		}
		expect(await cleaned.promise).toBe(true);
	});

	it("stops iterators that have neither return nor throw", async () => {
		const client = clientOf({
			serverStream: () => ({
				[Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: {} }) }),
			}),
		});
		const controller = new AbortController();
		const reading = (async () => {
			for await (const _ of client.serverStream({}, { signal: controller.signal })) {
				controller.abort();
			}
		})();
		expect(codeOf(await caught(reading))).toBe("Canceled");
	});
});

describe("a shutdown", () => {
	it("ends open calls even if their handlers continue, and fails later ones", async () => {
		const shutdown = new AbortController();
		let ran = 0;
		const client = clientOf(
			{
				unary: () => {
					ran += 1;
					return forever();
				},
				async *serverStream() {
					ran += 1;
					yield { text: "first" };
					await forever();
				},
			},
			{ shutdownSignal: shutdown.signal },
		);
		const unary = errorOf(client.unary({}));
		const stream = textsOf(client.serverStream({}));
		await new Promise(setImmediate);
		shutdown.abort();
		const unavailable = "Unavailable: the server is shutting down";
		expect(await unary).toBe(unavailable);
		expect(await stream).toEqual(["first", unavailable]);
		expect(await errorOf(client.unary({}))).toBe(unavailable);
		expect(ran).toBe(2);
	});

	it("gives each caller its own copy of the error", async () => {
		const shutdown = new AbortController();
		const client = clientOf({ unary: () => forever() }, { shutdownSignal: shutdown.signal });
		const calls = [caught(client.unary({})), caught(client.unary({}))];
		const reason = new ConnectError("moved", Code.Unavailable, { "x-to": "elsewhere" });
		shutdown.abort(reason);
		const [one, other] = await Promise.all(calls);
		expect([one, other].map(seen)).toEqual(["Unavailable: moved", "Unavailable: moved"]);
		expect(one?.metadata.get("x-to")).toBe("elsewhere");
		expect(one).not.toBe(other);
		expect(one).not.toBe(reason);
	});
});

describe("the scheduler", () => {
	it("is what a call reaches its handler by, never the caller's stack", async () => {
		const order: string[] = [];
		const client = clientOf({
			unary: () => {
				order.push("handler");
				return {};
			},
		});
		const call = client.unary({});
		order.push("caller continues");
		await call;
		expect(order).toEqual(["caller continues", "handler"]);
	});

	it("carries the call, each message and each end", async () => {
		let hops = 0;
		const client = clientOf(echoing, {
			scheduler: {
				schedule: (task) => {
					hops += 1;
					systemScheduler.schedule(task);
				},
				turn: () => undefined,
			},
		});
		await client.unary({ text: "m" });
		expect(hops).toBe(2);
		hops = 0;
		await drained(client.serverStream({ text: "m" }));
		// The call; the response and its end: there and back each.
		expect(hops).toBe(5);
	});
});

describe("a method that streams requests", () => {
	it("is refused by both clients, by its name and kind", async () => {
		const transport = transportTo({});
		const refusal = (kind: string) =>
			`Unimplemented: plinth.inprocess.probe.v1.ProbeService.${kind}: the in-process transport ` +
			"supports unary and server-streaming methods";
		for (const client of [
			createClient(ProbeService, transport),
			createInProcessClient(ProbeService, transport),
		]) {
			expect(await errorOf((async () => client.clientStream(texts("q")))())).toBe(
				refusal("ClientStream is client_streaming"),
			);
			expect(await errorOf((async () => drained(client.bidi(texts("q"))))())).toBe(
				refusal("Bidi is bidi_streaming"),
			);
		}
	});
});

describe("registration", () => {
	it("accepts single methods, the last of which wins", async () => {
		const transport = createInProcessTransport((router) => {
			router
				.service(ProbeService, { unary: () => ({ text: "service" }) })
				.rpc(ProbeService.method.unary, () => ({ text: "method" }));
		});
		expect((await createClient(ProbeService, transport).unary({})).text).toBe("method");
	});

	it("prefers a service's own options to the router's", async () => {
		const transport = createInProcessTransport(
			(router) => {
				router.service(ProbeService, echoing, { interceptors: [] });
			},
			{
				router: {
					interceptors: [
						() => () => {
							throw new Error("not for this service");
						},
					],
				},
			},
		);
		expect((await createClient(ProbeService, transport).unary({ text: "m" })).text).toBe("m");
	});

	it("names the method that is not registered", async () => {
		const client = createClient(
			ProbeService,
			createInProcessTransport(() => {}),
		);
		expect(await errorOf(client.unary({}))).toBe(
			"Unimplemented: plinth.inprocess.probe.v1.ProbeService.Unary is not registered with this transport",
		);
	});
});
