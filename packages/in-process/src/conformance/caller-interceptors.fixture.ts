import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues, type Interceptor } from "@connectrpc/connect";
import { PongSchema } from "../../testdata/src/gen/probe_pb.ts";
import {
	type Behavior,
	caught,
	errorOf,
	forever,
	happening,
	seen,
	textsOf,
	throwOnAbort,
} from "./behavior.fixture.ts";
import { marking, throwing, tracing, user } from "./interceptors.fixture.ts";

/** What interceptors of the caller, alone and with those of the server, can observe and change. */
export const callerInterceptorBehaviors: readonly Behavior[] = [
	{
		does: "runs the interceptors of both sides, each first one outermost",
		async play(connect) {
			const trace: string[] = [];
			const { client } = await connect({
				handlers: {
					unary: () => {
						trace.push("handler");
						return {};
					},
				},
				caller: [tracing("caller 1", trace), tracing("caller 2", trace)],
				server: [tracing("server 1", trace), tracing("server 2", trace)],
			});
			await client.unary({});
			return trace;
		},
		outcome: [
			"caller 1 in",
			"caller 2 in",
			"server 1 in",
			"server 2 in",
			"handler",
			"server 2 out",
			"server 1 out",
			"caller 2 out",
			"caller 1 out",
		],
	},
	{
		does: "lets interceptors of both sides replace the messages of a unary call",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: ({ text }) => ({ text: `(${text})` }) },
				caller: [marking("c")],
				server: [marking("s")],
			});
			return (await client.unary({ text: "m" })).text;
		},
		outcome: "(mcs)sc",
	},
	{
		does: "lets interceptors of both sides replace the messages of a stream",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream({ text }) {
						yield { text: `(${text}1)` };
						yield { text: `(${text}2)` };
					},
				},
				caller: [marking("c")],
				server: [marking("s")],
			});
			return textsOf(client.serverStream({ text: "a" }));
		},
		outcome: ["(acs1)sc", "(acs2)sc"],
	},
	{
		does: "shows interceptors of both sides what is called",
		async play(connect) {
			const saw: string[] = [];
			const recording: Interceptor = (next) => (request) => {
				const { service, method, url, requestMethod } = request;
				saw.push(
					`${service.typeName} ${method.name} ${requestMethod} ${new URL(url).pathname.split("/").pop()}`,
				);
				return next(request);
			};
			const { client } = await connect({
				handlers: { unary: () => ({}) },
				caller: [recording],
				server: [recording],
			});
			await client.unary({});
			return saw;
		},
		outcome: [
			"plinth.inprocess.probe.v1.ProbeService Unary POST Unary",
			"plinth.inprocess.probe.v1.ProbeService Unary POST Unary",
		],
	},
	{
		does: "ends a stream behind interceptors when its caller aborts, on both sides",
		async play(connect) {
			const cleaned = happening<string>();
			const { client } = await connect({
				handlers: {
					async *serverStream({ text }, { signal }) {
						try {
							yield { text };
							await throwOnAbort(signal);
						} finally {
							cleaned.resolve("cleaned up");
						}
					},
				},
				caller: [marking("c")],
				server: [marking("s")],
			});
			const controller = new AbortController();
			const heard: string[] = [];
			const reading = (async () => {
				for await (const { text } of client.serverStream(
					{ text: "a" },
					{ signal: controller.signal },
				)) {
					heard.push(text);
					controller.abort("enough");
				}
			})();
			return [await errorOf(reading), heard, await cleaned.promise];
		},
		outcome: ["Canceled: enough", ["acssc"], "cleaned up"],
	},
	{
		does: "sends the headers that a caller's interceptor adds",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (_, { requestHeader }) => ({
						text: `${requestHeader.get("x-own")} ${requestHeader.get("x-added")}`,
					}),
				},
				caller: [
					(next) => (request) => {
						request.header.set("x-added", "added");
						return next(request);
					},
				],
			});
			return (await client.unary({}, { headers: { "x-own": "own" } })).text;
		},
		outcome: "own added",
	},
	{
		does: "sends the headers that a caller's interceptor substitutes for the call's",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (_, { requestHeader }) => ({
						text: `${requestHeader.get("x-own")} ${requestHeader.get("x-added")}`,
					}),
				},
				caller: [
					(next) => (request) => {
						const header = new Headers(request.header);
						header.set("x-own", "replaced");
						return next({ ...request, header });
					},
				],
			});
			return (await client.unary({}, { headers: { "x-own": "own" } })).text;
		},
		outcome: "replaced null",
	},
	{
		does: "does not change the caller's headers when interceptors change a call's",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: () => ({}) },
				caller: [
					(next) => (request) => {
						request.header.set("x-added", "added");
						return next(request);
					},
				],
			});
			const headers = new Headers();
			await client.unary({}, { headers });
			return headers.has("x-added");
		},
		outcome: false,
	},
	{
		does: "shows a caller's interceptor the response's headers and trailers",
		async play(connect) {
			const saw: unknown[] = [];
			const { client } = await connect({
				handlers: {
					unary: (_, context) => {
						context.responseHeader.set("x-head", "h");
						context.responseTrailer.set("x-trail", "t");
						return {};
					},
				},
				caller: [
					(next) => async (request) => {
						const response = await next(request);
						saw.push(response.header.get("x-head"), response.trailer.get("x-trail"));
						return response;
					},
				],
			});
			await client.unary({});
			return saw;
		},
		outcome: ["h", "t"],
	},
	{
		does: "shows a caller's interceptor the caller's context values",
		async play(connect) {
			const saw: string[] = [];
			const { client } = await connect({
				handlers: { unary: () => ({}) },
				caller: [
					(next) => (request) => {
						saw.push(request.contextValues.get(user));
						return next(request);
					},
				],
			});
			await client.unary({}, { contextValues: createContextValues().set(user, "me") });
			await client.unary({});
			return saw;
		},
		outcome: ["me", "nobody"],
	},
	{
		does: "accepts the response of a caller's interceptor that makes no call",
		async play(connect) {
			let ran = false;
			const { client } = await connect({
				handlers: {
					unary: () => {
						ran = true;
						return {};
					},
				},
				caller: [
					() => async (request) => {
						if (request.stream) {
							throw new Error("not a stream");
						}
						return {
							stream: false,
							service: request.service,
							method: request.method,
							header: new Headers(),
							trailer: new Headers(),
							message: create(PongSchema, { text: "cached" }),
						};
					},
				],
			});
			return [(await client.unary({})).text, ran];
		},
		outcome: ["cached", false],
	},
	{
		does: "passes the error of a caller's interceptor on, including its message",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: () => ({}) },
				caller: [throwing(new Error("my own fault"))],
			});
			return errorOf(client.unary({}));
		},
		outcome: "Unknown: my own fault",
	},
	{
		does: "passes the ConnectError object of a caller's interceptor on",
		async play(connect) {
			const error = new ConnectError("my own", Code.FailedPrecondition);
			const { client } = await connect({
				handlers: { unary: () => ({}) },
				caller: [throwing(error)],
			});
			return (await caught(client.unary({}))) === error;
		},
		outcome: true,
	},
	{
		does: "passes the error of a caller's interceptor on to the reader of a stream",
		async play(connect) {
			const { client } = await connect({
				handlers: { async *serverStream() {} },
				caller: [throwing(new Error("my own fault"))],
			});
			return textsOf(client.serverStream({}));
		},
		outcome: ["Unknown: my own fault"],
	},
	{
		does: "lets a caller's interceptor retry",
		async play(connect) {
			let tries = 0;
			const { client } = await connect({
				handlers: {
					unary: (_, { requestHeader }) => {
						tries += 1;
						requestHeader.set("x-probe", "touched");
						if (tries < 3) {
							throw new ConnectError("overloaded", Code.Unavailable);
						}
						return { text: `try ${tries}` };
					},
				},
				caller: [
					(next) => async (request) => {
						for (;;) {
							try {
								return await next(request);
							} catch (error) {
								if (ConnectError.from(error).code !== Code.Unavailable) {
									throw error;
								}
							}
						}
					},
				],
			});
			return (await client.unary({}, { headers: { "x-probe": "p" } })).text;
		},
		outcome: "try 3",
	},
	{
		does: "passes a caller's interceptor the error object of the call",
		async play(connect) {
			const saw: string[] = [];
			const { client } = await connect({
				handlers: {
					unary: () => {
						throw new Error("a bug");
					},
				},
				caller: [
					(next) => async (request) => {
						try {
							return await next(request);
						} catch (error) {
							saw.push(seen(error));
							throw new ConnectError("translated", Code.Unknown);
						}
					},
				],
			});
			return [await errorOf(client.unary({})), saw];
		},
		outcome: ["Unknown: translated", ["Internal: internal error"]],
	},
	{
		does: "aborts the signal of a caller's interceptor with the caller's",
		async play(connect) {
			const running = happening();
			const aborted = happening<unknown>();
			const { client } = await connect({
				handlers: {
					unary: () => {
						running.resolve();
						return forever();
					},
				},
				caller: [
					(next) => (request) => {
						const { signal } = request;
						signal.addEventListener("abort", () => aborted.resolve(signal.reason));
						return next(request);
					},
				],
			});
			const controller = new AbortController();
			const call = errorOf(client.unary({}, { signal: controller.signal }));
			await running.promise;
			controller.abort("so be it");
			return [await call, await aborted.promise];
		},
		outcome: ["Canceled: so be it", "so be it"],
	},
	{
		does: "aborts the signal of a caller's interceptor when the call is over",
		async play(connect) {
			const over = happening<boolean>();
			const { client } = await connect({
				handlers: { unary: () => ({}) },
				caller: [
					(next) => (request) => {
						request.signal.addEventListener("abort", () => over.resolve(true));
						return next(request);
					},
				],
			});
			await client.unary({});
			return over.promise;
		},
		outcome: true,
	},
	{
		does: "aborts the signal of a caller's interceptor at the deadline",
		async play(connect) {
			const over = happening<string>();
			const { client } = await connect({
				handlers: { unary: () => forever() },
				caller: [
					(next) => (request) => {
						const { signal } = request;
						signal.addEventListener("abort", () => over.resolve(seen(signal.reason)));
						return next(request);
					},
				],
			});
			return [await errorOf(client.unary({}, { timeoutMs: 30 })), await over.promise];
		},
		outcome: [
			"DeadlineExceeded: the operation timed out",
			"DeadlineExceeded: the operation timed out",
		],
	},
	{
		does: "observes the signal that a caller's interceptor substitutes for the call's",
		async play(connect) {
			const running = happening();
			const own = new AbortController();
			const { client } = await connect({
				handlers: {
					unary: () => {
						running.resolve();
						return forever();
					},
				},
				caller: [
					(next) => (request) =>
						next({ ...request, signal: AbortSignal.any([request.signal, own.signal]) }),
				],
			});
			const call = caught(client.unary({}));
			await running.promise;
			own.abort(new ConnectError("the interceptor's", Code.Aborted));
			return seen(await call).startsWith("Aborted");
		},
		outcome: true,
	},
];
