import { once } from "node:events";
import { constants } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { clientAddressHeader } from "@plinth/forwarding/headers";
import { ResourceService } from "@plinth/proto";
import { createRpcRouter } from "@plinth/rpc-server";
import { silentLogger, systemClock } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { ExchangeCall } from "../agent/exchange-call.ts";
import { AgentClients } from "../agents-listener/agent-clients.ts";
import { checkAgent } from "../agents-listener/check-agent.ts";
import {
	ServerReflection,
	ServerReflectionRequestSchema,
} from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { enveloped, openSession, openSocket, post, type RawCall } from "../raw-calls.fixture.ts";
import { startListener } from "../started-listener.fixture.ts";
import { echoRouter } from "./echo-router.fixture.ts";
import { type Exchange, exchangeOf } from "./exchange.ts";
import { Exchanges } from "./exchanges.ts";
import { defaultListenerLimits } from "./limits.ts";
import type { HttpConnection, HttpRequest, HttpResponse } from "./request-handler.ts";
import type { ExchangeHandler } from "./rpc-handler.ts";

const read = "/plinth.resource.v1.ResourceService/Read";
const write = "/plinth.resource.v1.ResourceService/Write";
const watch = "/plinth.resource.v1.ResourceService/WatchList";
const reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const enhanceYourCalm = constants.NGHTTP2_ENHANCE_YOUR_CALM;
const grpc = { contentType: "application/grpc" };

/** Resolves when the condition holds, after any number of iterations of the event loop. */
async function until(condition: () => boolean): Promise<void> {
	while (!condition()) {
		await new Promise((resolve) => setImmediate(resolve));
	}
}

/** What a handler gets. */
interface Handled {
	readonly exchange: Exchange;
	readonly request: HttpRequest;
	readonly response: HttpResponse;
}

/** Ends a request as an agent does whose server has reset it. */
function resetByAgent({ exchange, request, response }: Handled): void {
	new ExchangeCall(exchange, request, response, false).reset(enhanceYourCalm);
}

/** Counts every call for a limit of its own, and how many have left it. */
function admitted(): {
	readonly left: () => number;
	readonly gate: (call: HandlerContext) => void;
} {
	let left = 0;
	return {
		left: () => left,
		gate: ({ values }) =>
			exchangeOf(values).admit({
				leave: () => {
					left += 1;
				},
			}),
	};
}

describe("a connection with a stream that stalled", () => {
	it("is closed when its client does not acknowledge a PING within 10 s", async () => {
		const { address, clock, exchanges, cuts } = await startListener(echoRouter({}));
		const socket = await openSocket(address);
		const closed = once(socket, "close");
		socket.resume();
		socket.write(openingOfHttp2());
		socket.write(requestOfHttp2(1, read));
		await until(() => exchanges.pendingBytes > 0);
		clock.advance(31_000);
		expect(cuts).toEqual(["write_stall"]);
		clock.advance(9_000);
		socket.write(requestOfHttp2(3, read));
		await until(() => exchanges.pendingBytes > 0);
		clock.advance(1_000);
		await closed;
	});

	it("stays open when its client acknowledges the PING", async () => {
		const { address, clock, exchanges, cuts } = await startListener(echoRouter({}));
		const session = openSession(address, { initialWindowSize: 0 });
		const pinged = once(session, "ping");
		const { ended } = post(session, read, "{}");
		await until(() => exchanges.pendingBytes > 0);
		clock.advance(31_000);
		expect((await ended).rstCode).toBe(enhanceYourCalm);
		await pinged;
		// The server has the acknowledgement when it has what was sent after it.
		post(session, read, "{}");
		await until(() => exchanges.pendingBytes > 0);
		clock.advance(20_000);
		expect(cuts).toEqual(["write_stall"]);
		post(session, read, "{}");
		await until(() => exchanges.open === 2);
	});

	it("stays open when the process was stopped for longer than that", async () => {
		let late: (() => void)[] | undefined;
		const clock = new FakeClock({
			deliver: (callback) => (late === undefined ? callback() : late.push(callback)),
		});
		const { address, exchanges, cuts } = await startListener(echoRouter({}), { clock });
		const session = openSession(address, { initialWindowSize: 0 });
		const { ended } = post(session, read, "{}");
		await until(() => exchanges.pendingBytes > 0);
		clock.advance(31_000);
		late = [];
		clock.advance(60_000);
		for (const callback of late.splice(0)) {
			callback();
		}
		expect((await ended).rstCode).toBe(enhanceYourCalm);
		expect(cuts).toEqual(["write_stall"]);
		post(session, read, "{}");
		await until(() => exchanges.open === 1 || session.closed);
		expect(session.closed).toBe(false);
	});
});

describe.each([
	["plinth", false],
	["plinth", true],
	["node", false],
	["node", true],
] as const)(
	"a connection whose client reads no bytes at all (http2 %s, after a GOAWAY: %s)",
	(http2, goesAway) => {
		/**
		 * Opens the connection, and two responses of which the kernel takes a part.
		 *
		 * @param path - that of a first request, which the client does not end.
		 */
		async function openUnread(path?: "/short" | "/silent") {
			let isClosed = false;
			let unended: Handled | undefined;
			const serve: ExchangeHandler = (exchange, request, response) => {
				if (request.target === path) {
					unended = { exchange, request, response };
				}
				if (request.target === "/silent") {
					return;
				}
				response.writeHead(200);
				if (request.target === "/short") {
					exchange.end(Buffer.from("ok"));
				} else {
					exchange.write(new Uint8Array(16_000_000))?.catch(() => {});
				}
				exchange.settled();
			};
			const connectionClock = new FakeClock();
			const listener = await startListener(echoRouter({}), {
				...{ http2, connectionClock },
				pages: { has: () => true, serve },
				wrap: (handler) => (request, response) => {
					request.connection.onceClosed(() => {
						isClosed = true;
					});
					handler(request, response);
				},
			});
			const { exchanges } = listener;
			const socket = await openSocket(listener.address);
			socket.write(openingOfHttp2(100_000_000));
			socket.write(creditOfHttp2(100_000_000));
			if (path !== undefined) {
				socket.write(requestOfHttp2(1, path, false));
				await until(() => unended !== undefined);
			}
			socket.write(requestOfHttp2(3, "/page"));
			socket.write(requestOfHttp2(5, "/page"));
			if (goesAway) {
				socket.write(frame(0x7, 0, 0, Buffer.alloc(8)));
			}
			await until(() => exchanges.open === (path === undefined ? 2 : 3));
			for (let before = -1; before !== exchanges.pendingBytes; ) {
				before = exchanges.pendingBytes;
				await new Promise((resolve) => setTimeout(resolve, 200));
			}
			return { ...listener, connectionClock, socket, unended, isClosed: () => isClosed };
		}

		/** The client cancels both requests for a page. */
		async function reset({ socket, exchanges }: Awaited<ReturnType<typeof openUnread>>) {
			const cancel = Buffer.of(0, 0, 0, constants.NGHTTP2_CANCEL);
			socket.write(Buffer.concat([frame(0x3, 0, 3, cancel), frame(0x3, 0, 5, cancel)]));
			await until(() => exchanges.open === 0);
		}

		it("is closed when it does not acknowledge a PING, although nothing more can be written", async () => {
			const { clock, connectionClock, cuts, isClosed } = await openUnread();
			clock.advance(31_000);
			expect(cuts).toEqual(["write_stall", "write_stall"]);
			await new Promise((resolve) => setTimeout(resolve, 50));
			expect(isClosed()).toBe(false);
			clock.advance(10_000);
			connectionClock.advance(defaultListenerLimits.lingerMs);
			await expect.poll(isClosed).toBe(true);
		});

		it("is closed when it has been idle, although its client has reset its streams", async () => {
			const opened = await openUnread();
			await reset(opened);
			opened.connectionClock.advance(defaultListenerLimits.idleMs);
			opened.connectionClock.advance(defaultListenerLimits.idleMs);
			await expect.poll(opened.isClosed).toBe(true);
			expect(opened.cuts).toEqual([]);
		});

		it("is closed soon after the listener closes, although its client has reset its streams", async () => {
			const opened = await openUnread();
			await reset(opened);
			opened.connectionClock.advance(defaultListenerLimits.idleMs);
			const closed = opened.close(defaultListenerLimits.idleMs);
			opened.connectionClock.advance(4 * defaultListenerLimits.lingerMs);
			await closed;
			await expect.poll(opened.isClosed).toBe(true);
		});

		describe.each([
			["whose request has not ended", "/short", () => {}],
			["that its handler destroys", "/silent", ({ exchange }) => exchange.destroy()],
			["that is cut, without a response", "/silent", ({ exchange }) => exchange.cut("stream_idle")],
			["that an agent forwards", "/silent", resetByAgent],
		] satisfies [string, "/short" | "/silent", (unended: Handled) => void][])(
			"if the server has reset a stream, %s,",
			(_, path, end) => {
				async function openReset() {
					const opened = await openUnread(path);
					const { unended } = opened;
					if (unended === undefined) {
						throw new Error("the first request was not handled");
					}
					end(unended);
					unended.exchange.settled();
					opened.clock.advance(6_000);
					expect(unended.exchange.isClosed).toBe(true);
					await reset(opened);
					return opened;
				}

				it("is closed when it does not acknowledge a PING, although its client has reset the others", async () => {
					const { clock, connectionClock, isClosed } = await openReset();
					clock.advance(41_000);
					connectionClock.advance(defaultListenerLimits.lingerMs);
					await expect.poll(isClosed).toBe(true);
				});

				it("is closed soon after the listener closes, although its client has reset the others", async () => {
					const { clock, connectionClock, close, isClosed } = await openReset();
					const closed = close(defaultListenerLimits.idleMs);
					connectionClock.advance(defaultListenerLimits.lingerMs);
					clock.advance(41_000);
					connectionClock.advance(4 * defaultListenerLimits.lingerMs);
					await closed;
					await expect.poll(isClosed).toBe(true);
				});
			},
		);
	},
);

describe.each(["plinth", "node"] as const)(
	"a connection whose client reads (http2 %s)",
	(http2) => {
		it("stays open after a stream whose request has not ended was reset, although its client has sent a GOAWAY", async () => {
			let long: { readonly exchange: Exchange; readonly request: HttpRequest } | undefined;
			let isAcknowledged = false;
			const serve: ExchangeHandler = (exchange, request, response) => {
				response.writeHead(200);
				if (request.target === "/short") {
					exchange.end(Buffer.from("ok"));
					exchange.settled();
				} else {
					long = { exchange, request };
					void exchange.write(Buffer.from("first, "));
				}
			};
			const { address, clock } = await startListener(echoRouter({}), {
				...{ http2, pages: { has: () => true, serve } },
				wrap: (handler) => (request, response) => {
					const { connection } = request;
					const ping = connection.ping.bind(connection);
					connection.ping = (done) =>
						ping(() => {
							isAcknowledged = true;
							done();
						});
					handler(request, response);
				},
			});
			const session = openSession(address);
			const running = post(session, "/long", "{", { isOpen: true });
			const unended = post(session, "/short", "{}", { isOpen: true });
			await Promise.all([running, unended].map(({ stream }) => once(stream, "response")));
			session.close();
			running.stream.end("}");
			// The server has the GOAWAY when it has what was sent after it.
			await until(() => {
				long?.request.read();
				return long?.request.isRead === true;
			});
			clock.advance(6_000);
			await unended.ended;
			await until(() => isAcknowledged);
			clock.advance(60_000);
			long?.exchange.end(Buffer.from("last"));
			long?.exchange.settled();
			expect((await running.ended).body).toBe("first, last");
		});
	},
);

describe.each([
	["plinth", "short_responses"],
	["plinth", "pending_bytes"],
	["node", "short_responses"],
	["node", "pending_bytes"],
] as const)(
	"a connection whose client reads no bytes at all (http2 %s), and whose responses end as %s",
	(http2, reason) => {
		it("is closed when it does not acknowledge a PING, although no response of it is left", async () => {
			let isClosed: boolean | undefined;
			const unread: Exchange[] = [];
			const serve: ExchangeHandler = (exchange, request, response) => {
				const isUnread = request.target === "/unread";
				if (isUnread) {
					unread.push(exchange);
				}
				response.writeHead(200);
				exchange.end(new Uint8Array(isUnread || reason === "short_responses" ? 12_000 : 60_000));
				exchange.settled();
			};
			const { address, clock, exchanges, cuts } = await startListener(echoRouter({}), {
				http2,
				pages: { has: () => true, serve },
				...(reason === "pending_bytes" && { limits: { pendingBytes: 9_000_000 } }),
				wrap: (handler) => (request, response) => {
					if (request.target === "/unread" && isClosed === undefined) {
						isClosed = false;
						request.connection.onceClosed(() => {
							isClosed = true;
						});
					}
					handler(request, response);
				},
			});
			const socket = await openSocket(address);
			socket.write(openingOfHttp2(100_000_000));
			socket.write(creditOfHttp2(100_000_000));
			for (let index = 0; index < 700; index += 1) {
				socket.write(requestOfHttp2(2 * index + 1, "/unread"));
			}
			await until(() => unread.length === 700);
			for (let before = -1; before !== exchanges.pendingBytes; ) {
				before = exchanges.pendingBytes;
				await new Promise((resolve) => setTimeout(resolve, 200));
			}
			const unreadCount = unread.filter((exchange) => !exchange.isClosed).length;
			expect(unreadCount).toBeGreaterThan(0);
			expect(cuts).toEqual([]);
			const other = openSession(address, { initialWindowSize: 0 });
			for (let index = 0; index < (reason === "short_responses" ? 1_000 : 250); index += 1) {
				post(other, "/other", "{}");
			}
			await until(() => unread.every((exchange) => exchange.isClosed));
			expect(cuts.slice(0, unreadCount)).toEqual(Array(unreadCount).fill(reason));
			clock.advance(39_000);
			await new Promise((resolve) => setTimeout(resolve, 50));
			expect(isClosed).toBe(false);
			clock.advance(1_000);
			await expect.poll(() => isClosed).toBe(true);
		});
	},
);

describe.each(["plinth", "node"] as const)("a connection of an agent (http2 %s)", (http2) => {
	it("stays open when many of its clients have stalled, and is asked once", async () => {
		const secrets = { accepts: () => true };
		const clients = new AgentClients(100);
		const { address, clock, exchanges, cuts } = await startListener(echoRouter({}), {
			http2,
			wrap: (handler) => checkAgent({ secrets, clients, onRefused: () => {} }, handler),
		});
		const session = openSession(address, { initialWindowSize: 0 });
		let pings = 0;
		session.on("ping", () => {
			pings += 1;
		});
		const stalled = Array.from({ length: 20 }, (_, index) =>
			post(session, read, "{}", { headers: { [clientAddressHeader]: `10.0.0.${index}` } }),
		);
		await Promise.all(stalled.map(({ stream }) => once(stream, "response")));
		clock.advance(31_000);
		expect(cuts).toEqual(stalled.map(() => "write_stall"));
		await Promise.all(stalled.map(({ ended }) => ended));
		// The server has the acknowledgement when it has what was sent after it.
		post(session, read, "{}");
		await until(() => exchanges.pendingBytes > 0);
		clock.advance(20_000);
		post(session, read, "{}");
		await until(() => exchanges.open === 2 || session.closed);
		expect([session.closed, pings]).toEqual([false, 1]);
	});
});

describe("unread bytes of plain HTTP", () => {
	it("count together: beyond the total limit, the oldest of them are ended, and no other caller's", async () => {
		const writes =
			(byteCount: number): ExchangeHandler =>
			(exchange, _request, response) => {
				response.writeHead(200);
				exchange.write(new Uint8Array(byteCount));
				exchange.settled();
			};
		const { address, exchanges, cuts } = await startListener(echoRouter({}), {
			special: new Map([[read, writes(40_000)]]),
			pages: { has: () => true, serve: writes(15_000) },
			limits: { pendingBytes: 100_000 },
		});
		const open = (path = "/page") =>
			post(openSession(address, { initialWindowSize: 0 }), path, "{}");
		const reader = open(read);
		const others: RawCall[] = [];
		for (let pendingBytes = 40_000; pendingBytes <= 100_000; pendingBytes += 15_000) {
			await until(() => exchanges.pendingBytes === pendingBytes);
			others.push(open());
		}
		const calls = [reader, ...others];
		const ends = calls.map(({ ended }, index) => ended.then(({ rstCode }) => [index, rstCode]));
		expect(await Promise.race(ends)).toEqual([1, enhanceYourCalm]);
		expect([cuts, exchanges.pendingBytes]).toEqual([["pending_bytes"], 100_000]);
		expect(calls.map(({ stream }) => stream.closed)).toEqual([
			false,
			true,
			false,
			false,
			false,
			false,
		]);
		for (const { stream } of calls) {
			stream.close(constants.NGHTTP2_CANCEL);
		}
		await until(() => exchanges.open === 0);
		expect(exchanges.pendingBytes).toBe(0);
	});
});

describe("of unread bytes of plain HTTP beyond the total limit", () => {
	it("those of a client that reads are not the first to be ended, although it began before the others", () => {
		const clock = new FakeClock();
		const limits = { ...defaultListenerLimits, pendingBytes: 45_000 };
		const exchanges = new Exchanges({ clock, logger: silentLogger, limits });
		const begin = () => {
			const exchange = exchanges.begin("plain", readRequest(), unreadResponse);
			void exchange.write(new Uint8Array(15_000), true);
			return exchange;
		};
		const [reader, ...others] = [begin(), begin(), begin()];
		clock.advance(5_000);
		reader?.sent(15_000);
		void reader?.write(new Uint8Array(15_000), true);
		const last = begin();
		const isClosed = [reader, ...others, last].map((exchange) => exchange?.isClosed);
		expect(isClosed).toEqual([false, true, false, false]);
	});
});

describe("a client whose responses are ended for the sake of others", () => {
	it("gets at most one PING a sweep, and as much time to acknowledge it as if it had stalled", () => {
		const pings: (() => void)[] = [];
		let isDestroyed = false;
		const connection = {
			isMultiplexed: true,
			onceClosed: () => {},
			ping: (done: () => void) => pings.push(done),
			destroy: () => {
				isDestroyed = true;
			},
		} as unknown as HttpConnection;
		const clock = new FakeClock();
		const limits = { ...defaultListenerLimits, pendingBytes: 45_000 };
		const exchanges = new Exchanges({ clock, logger: silentLogger, limits });
		const begin = () => {
			const exchange = exchanges.begin("plain", readRequest(connection), unreadResponse);
			void exchange.write(new Uint8Array(15_000), true);
			exchange.settled();
			return exchange;
		};
		const [first, second, third] = [begin(), begin(), begin(), begin(), begin()];
		expect([first?.isClosed, second?.isClosed, third?.isClosed]).toEqual([true, true, false]);
		expect(pings.length).toBe(0);
		clock.advance(1_000);
		expect(pings.length).toBe(1);
		begin();
		expect(third?.isClosed).toBe(true);
		clock.advance(1_000);
		expect(pings.length).toBe(1);
		// What the client has read says nothing about the response that was written since.
		pings[0]?.();
		clock.advance(1_000);
		expect(pings.length).toBe(2);
		clock.advance(36_000);
		expect(isDestroyed).toBe(false);
		clock.advance(1_000);
		expect(isDestroyed).toBe(true);
	});
});

describe("of more than 1,000 unread pages", () => {
	it("that of a client that reads is not the first to be ended, although it began before the others", () => {
		const clock = new FakeClock();
		const cuts: string[] = [];
		const exchanges = new Exchanges({
			...{ clock, logger: silentLogger, limits: defaultListenerLimits },
			onCut: (reason) => cuts.push(reason),
		});
		const begin = () => {
			const exchange = exchanges.begin("plain", readRequest(), unreadResponse);
			void exchange.write(new Uint8Array(15_000), true);
			return exchange;
		};
		const [reader, stalled, ...others] = Array.from({ length: 1_000 }, begin);
		clock.advance(5_000);
		reader?.sent(15_000);
		void reader?.write(new Uint8Array(15_000), true);
		others.push(begin());
		expect([reader?.isClosed, stalled?.isClosed]).toEqual([false, true]);
		expect(others.filter(({ isClosed }) => isClosed)).toEqual([]);
		expect(cuts).toEqual(["short_responses"]);
	});
});

/** A connection of HTTP/2. */
const connectionOfHttp2 = { isMultiplexed: true, onceClosed: () => {}, ping: () => {} };

/** A request that was read, on a connection of its own unless one is given. */
function readRequest(connection: Partial<HttpConnection> = { ...connectionOfHttp2 }): HttpRequest {
	return { connection, target: "/page", isRead: true } as unknown as HttpRequest;
}

/** A response of which nothing is read. */
const unreadResponse = {
	write: () => false,
	reset: () => {},
	listen: () => {},
} as unknown as HttpResponse;

describe("a handler that ignores its signal", () => {
	it("is released a minute after its client has gone", async () => {
		const warnings: unknown[] = [];
		const logger = {
			...silentLogger,
			warn: (fields: unknown, message: string) => warnings.push([message, fields]),
		};
		const { left, gate } = admitted();
		const started = Promise.withResolvers<void>();
		const aborted = Promise.withResolvers<void>();
		const router = createRpcRouter({ clock: systemClock, requestGate: gate }).service(
			ResourceService,
			{
				write: (_request, { signal }) => {
					signal.addEventListener("abort", () => aborted.resolve());
					started.resolve();
					return new Promise(() => {});
				},
			},
		);
		const { address, clock, exchanges, cuts } = await startListener(router, { logger });
		const { stream } = post(openSession(address), write, "{}");
		await started.promise;
		stream.close(constants.NGHTTP2_CANCEL);
		await aborted.promise;
		clock.advance(59_000);
		expect([exchanges.open, left(), cuts]).toEqual([1, 0, []]);
		clock.advance(1_000);
		expect([exchanges.open, left(), cuts]).toEqual([0, 1, ["abandoned"]]);
		expect(warnings).toEqual([
			["a handler did not return after its signal aborted", { path: write }],
		]);
	});
});

describe("a stream that its client can still write to", () => {
	const message = enveloped(
		Buffer.from(
			toBinary(
				ServerReflectionRequestSchema,
				create(ServerReflectionRequestSchema, { host: "here" }),
			),
		).toString("latin1"),
	);

	/** Responds to each request, or reads none. */
	function reflectionRouter(reads: boolean) {
		return createRpcRouter({ clock: systemClock, requestGate: admitted().gate }).service(
			ServerReflection,
			{
				async *serverReflectionInfo(requests) {
					if (!reads) {
						await new Promise(() => {});
					}
					for await (const { host } of requests) {
						yield { validHost: host };
					}
				},
			},
		);
	}

	it("is ended after five minutes without a message", async () => {
		const { address, clock, exchanges, cuts } = await startListener(reflectionRouter(true));
		const session = openSession(address);
		const { stream, ended } = post(session, reflection, message, { ...grpc, isOpen: true });
		await once(stream, "data");
		clock.advance(299_000);
		stream.write(message);
		await once(stream, "data");
		clock.advance(301_000);
		stream.once("end", () => stream.end());
		expect(await ended).toMatchObject({ status: "grpc 4", rstCode: 0 });
		expect(cuts).toEqual([]);
		await until(() => exchanges.open === 0);
	});

	it("is reset 10 s later if its handler continues", async () => {
		const { address, clock, exchanges, cuts } = await startListener(reflectionRouter(false));
		const session = openSession(address);
		const { ended } = post(session, reflection, message, { ...grpc, isOpen: true });
		await until(() => exchanges.open === 1);
		clock.advance(310_000);
		expect(cuts).toEqual([]);
		clock.advance(1_000);
		expect(cuts).toEqual(["stream_idle"]);
		expect((await ended).rstCode).toBe(enhanceYourCalm);
	});

	it("continues if streams may stall", async () => {
		const { address, clock } = await startListener(reflectionRouter(true), {
			streamsMayStall: true,
		});
		const session = openSession(address);
		const { stream } = post(session, reflection, message, { ...grpc, isOpen: true });
		await once(stream, "data");
		clock.advance(60 * 60_000);
		stream.write(message);
		await once(stream, "data");
	});
});

describe("short responses that are not read", () => {
	it("are limited to 1,000: the oldest is reset for one more, and no admitted call", async () => {
		const router = echoRouter({ requestGate: admitted().gate });
		const { address, exchanges, cuts } = await startListener(router);
		const session = openSession(address, { initialWindowSize: 0 });
		const admittedFirst = post(session, watch, enveloped("{}"), {
			contentType: "application/connect+json",
		});
		await until(() => exchanges.pendingBytes > 0);
		const [oldest, next] = Array.from({ length: 1_000 }, () => post(session, "/nowhere", ""));
		await until(() => exchanges.open === 1_001);
		expect(cuts).toEqual([]);
		post(session, "/nowhere", "");
		expect((await oldest?.ended)?.rstCode).toBe(enhanceYourCalm);
		expect([cuts, exchanges.open]).toEqual([["short_responses"], 1_001]);
		expect([next?.stream.closed, admittedFirst.stream.closed]).toEqual([false, false]);
	});
});

/** How a client opens an HTTP/2 connection; one that allows no bytes of bodies, unless there is a window. */
function openingOfHttp2(windowBytes = 0): Buffer {
	const initialWindowSize = Buffer.of(0, 4, 0, 0, 0, 0);
	initialWindowSize.writeUInt32BE(windowBytes, 2);
	return Buffer.concat([
		Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		frame(0x4, 0, 0, initialWindowSize),
	]);
}

/** Allows more bytes of bodies for the whole connection. */
function creditOfHttp2(bytes: number): Buffer {
	const credit = Buffer.alloc(4);
	credit.writeUInt32BE(bytes);
	return frame(0x8, 0, 0, credit);
}

/** A POST of `{}` over HTTP/2. Only the stream of a whole one ends. */
function requestOfHttp2(stream: number, path: string, isWhole = true): Buffer {
	const headers = {
		":method": "POST",
		":scheme": "http",
		":authority": "localhost",
		":path": path,
		"content-type": "application/json",
	};
	const literal = (text: string) => [Buffer.of(text.length), Buffer.from(text)];
	const block = Object.entries(headers).flatMap(([name, value]) => [
		Buffer.of(0),
		...literal(name),
		...literal(value),
	]);
	const endOfHeaders = 0x4;
	const endOfStream = isWhole ? 0x1 : 0;
	return Buffer.concat([
		frame(0x1, endOfHeaders, stream, Buffer.concat(block)),
		frame(0x0, endOfStream, stream, Buffer.from("{}")),
	]);
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
	const head = Buffer.alloc(9);
	head.writeUIntBE(payload.length, 0, 3);
	head.writeUInt8(type, 3);
	head.writeUInt8(flags, 4);
	head.writeUInt32BE(stream, 5);
	return Buffer.concat([head, payload]);
}
