import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { type Behavior, errorOf, texts, textsOf } from "./behavior.fixture.ts";
import { textIn, throwing, user } from "./interceptors.fixture.ts";

/** What interceptors of the server can observe and change. */
export const serverInterceptorBehaviors: readonly Behavior[] = [
	{
		does: "shows a server's interceptor the request's headers and messages",
		async play(connect) {
			const saw: unknown[] = [];
			const { client } = await connect({
				handlers: { unary: () => ({}) },
				server: [
					(next) => (request) => {
						saw.push(request.header.get("x-probe"));
						if (!request.stream) {
							saw.push(textIn(request.message));
						}
						return next(request);
					},
				],
			});
			await client.unary({ text: "m" }, { headers: { "x-probe": "p" } });
			return saw;
		},
		outcome: ["p", "m"],
	},
	{
		does: "gives a handler the context values that a server's interceptor sets",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: (_, context) => ({ text: context.values.get(user) }) },
				server: [
					(next) => (request) => {
						request.contextValues.set(user, "authenticated");
						return next(request);
					},
				],
			});
			return (await client.unary({})).text;
		},
		outcome: "authenticated",
	},
	{
		does: "gives a handler the headers, values and signal that a server's interceptor substitutes",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (_, { requestHeader, values, signal, method, requestMethod, timeoutMs }) => ({
						text: [
							requestHeader.get("x-probe"),
							values.get(user),
							signal.aborted,
							method.name,
							requestMethod,
							timeoutMs(),
						].join(" "),
					}),
				},
				server: [
					(next) => (request) =>
						next({
							...request,
							header: new Headers({ "x-probe": "put" }),
							contextValues: createContextValues().set(user, "put"),
							signal: AbortSignal.abort(),
						}),
				],
			});
			return (await client.unary({}, { headers: { "x-probe": "p" } })).text;
		},
		outcome: "put put true Unary POST ",
	},
	{
		does: "delivers headers and trailers that a server's interceptor sets on the response",
		async play(connect) {
			const saw: unknown[] = [];
			const { client } = await connect({
				handlers: {
					unary: (_, context) => {
						context.responseHeader.set("x-head", "handler");
						return {};
					},
				},
				server: [
					(next) => async (request) => {
						const response = await next(request);
						response.header.append("x-head", "interceptor");
						response.trailer.set("x-trail", "interceptor");
						return response;
					},
				],
			});
			await client.unary(
				{},
				{
					onHeader: (headers) => saw.push(headers.get("x-head")),
					onTrailer: (trailers) => saw.push(trailers.get("x-trail")),
				},
			);
			return saw;
		},
		outcome: ["handler, interceptor", "interceptor"],
	},
	{
		does: "delivers the headers and trailers that a server's interceptor sets on a stream",
		async play(connect) {
			const saw: unknown[] = [];
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield {};
					},
				},
				server: [
					(next) => async (request) => {
						const response = await next(request);
						const header = new Headers(response.header);
						header.set("x-head", "put");
						const trailer = new Headers(response.trailer);
						trailer.set("x-trail", "put");
						return { ...response, header, trailer };
					},
				],
			});
			for await (const _ of client.serverStream(
				{},
				{
					onHeader: (headers) => saw.push(headers.get("x-head")),
					onTrailer: (trailers) => saw.push(trailers.get("x-trail")),
				},
			)) {
				saw.push("message");
			}
			return saw;
		},
		outcome: ["put", "message", "put"],
	},
	{
		does: "passes a server's interceptor the error object that the handler threw",
		async play(connect) {
			const saw: unknown[] = [];
			const bug = new TypeError("a bug");
			const { client } = await connect({
				handlers: {
					unary: () => {
						throw bug;
					},
				},
				server: [
					(next) => async (request) => {
						try {
							return await next(request);
						} catch (error) {
							saw.push(error === bug);
							throw error;
						}
					},
				],
			});
			return [await errorOf(client.unary({})), saw];
		},
		outcome: ["Internal: internal error", [true]],
	},
	{
		does: "hides the message of an error that a server's interceptor throws",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: () => ({}), async *serverStream() {} },
				server: [throwing(new Error("the password is 1234"))],
			});
			return [await errorOf(client.unary({})), await textsOf(client.serverStream({}))];
		},
		outcome: ["Internal: internal error", ["Internal: internal error"]],
	},
	{
		does: "delivers the ConnectError of a server's interceptor, and runs no handler",
		async play(connect) {
			let ran = false;
			const { client } = await connect({
				handlers: {
					unary: () => {
						ran = true;
						return {};
					},
				},
				server: [throwing(new ConnectError("who are you?", Code.Unauthenticated))],
			});
			return [await errorOf(client.unary({})), ran];
		},
		outcome: ["Unauthenticated: who are you?", false],
	},
	{
		does: "lets a server's interceptor end a stream with an error",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield* texts("1", "2", "3");
					},
				},
				server: [
					(next) => async (request) => {
						const response = await next(request);
						if (!response.stream) {
							return response;
						}
						async function* two(messages: AsyncIterable<Message>) {
							let left = 2;
							for await (const message of messages) {
								if (left-- === 0) {
									throw new ConnectError("two are enough", Code.ResourceExhausted);
								}
								yield message;
							}
						}
						return { ...response, message: two(response.message) };
					},
				],
			});
			return textsOf(client.serverStream({}));
		},
		outcome: ["1", "2", "ResourceExhausted: two are enough"],
	},
];
