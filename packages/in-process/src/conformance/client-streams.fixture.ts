import { Code, ConnectError } from "@connectrpc/connect";
import {
	abortOf,
	type Behaviour,
	drained,
	endlessRequests,
	errorOf,
	forever,
	happening,
	texts,
	textsOf,
} from "./behaviour.fixture.ts";

const cutOffLooksComplete =
	"a stream that the caller resets looks to the server's reader like one that has ended; a handler that takes a part for the whole may commit half of something";

/** Methods with streams of requests. */
export const clientStreamBehaviours: readonly Behaviour[] = [
	{
		does: "brings all requests of a caller in order",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async clientStream(requests) {
						return { text: (await textsOf(requests)).join(" ") };
					},
				},
			});
			return (await client.clientStream(texts("a", "b", "c"))).text;
		},
		outcome: "a b c",
	},
	{
		does: "brings no requests as none",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async clientStream(requests) {
						return { number: (await textsOf(requests)).length };
					},
				},
			});
			return (await client.clientStream(texts())).number;
		},
		outcome: 0,
	},
	{
		does: "makes messages of the fields that a caller streams",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async clientStream(requests) {
						for await (const request of requests) {
							return { text: `${request.$typeName} ${request.number}` };
						}
						return {};
					},
				},
			});
			return (await client.clientStream(texts("a"))).text;
		},
		outcome: "plinth.inprocess.probe.v1.Ping 0",
	},
	{
		does: "brings headers and trailers around the one response to a stream",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async clientStream(requests, context) {
						context.responseHeader.set("x-head", `${context.requestHeader.get("x-probe")}`);
						await drained(requests);
						context.responseTrailer.set("x-trail", "t");
						return {};
					},
				},
			});
			const saw: unknown[] = [];
			await client.clientStream(texts("a"), {
				headers: { "x-probe": "p" },
				onHeader: (headers) => saw.push(headers.get("x-head")),
				onTrailer: (trailers) => saw.push(trailers.get("x-trail")),
			});
			return saw;
		},
		outcome: ["p", "t"],
	},
	{
		does: "takes the answer of a handler that reads no requests, and ends them",
		async play(connect) {
			const { client } = await connect({
				handlers: { clientStream: async () => ({ text: "unread" }) },
			});
			const { requests, ended } = endlessRequests();
			// Started, so that there is something to clean up.
			await requests.next();
			return [(await client.clientStream(requests)).text, await ended];
		},
		outcome: ["unread", "returned"],
	},
	{
		does: "takes the answer of a handler that stops reading requests, and ends them",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async clientStream(requests) {
						for await (const { text } of requests) {
							return { text: `read ${text.slice(0, 4)}` };
						}
						return {};
					},
				},
			});
			const { requests, ended } = endlessRequests();
			const { text } = await client.clientStream(requests);
			return [text, await ended];
		},
		outcome: ["read more", "returned"],
	},
	{
		does: "throws a handler's error into the requests that it left",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async clientStream(requests) {
						const reader = requests[Symbol.asyncIterator]();
						await reader.next();
						throw new ConnectError("enough", Code.ResourceExhausted);
					},
				},
			});
			const { requests, ended } = endlessRequests();
			return [await errorOf(client.clientStream(requests)), await ended];
		},
		outcome: ["ResourceExhausted: enough", "threw ResourceExhausted: enough"],
	},
	{
		does: "says nothing of a handler's bug amid requests",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async clientStream(requests) {
						await drained(requests);
						throw new Error("the password is 1234");
					},
				},
			});
			return errorOf(client.clientStream(texts("a")));
		},
		outcome: "Internal: internal error",
	},
	{
		does: "fails a call whose requests throw, on both sides",
		async play(connect) {
			const read = happening<unknown>();
			const { client } = await connect({
				handlers: {
					async clientStream(requests) {
						try {
							await drained(requests);
							read.resolve("the end");
						} catch (error) {
							read.resolve(error instanceof Error);
						}
						return {};
					},
				},
			});
			async function* requests() {
				yield { text: "a" };
				throw new Error("no more ideas");
			}
			return [await errorOf(client.clientStream(requests())), await read.promise];
		},
		outcome: ["Internal: no more ideas", true],
		accident: {
			on: "every wire",
			outcome: ["Internal: no more ideas", "the end"],
			why: cutOffLooksComplete,
		},
	},
	{
		does: "fails a call with the ConnectError that its requests throw",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async clientStream(requests) {
						await drained(requests);
						return {};
					},
				},
			});
			async function* requests() {
				yield { text: "a" };
				throw new ConnectError("no more ideas", Code.DataLoss);
			}
			return errorOf(client.clientStream(requests()));
		},
		outcome: "DataLoss: no more ideas",
	},
	{
		does: "aborts the handler's signal when the caller's requests throw",
		async play(connect) {
			const aborted = happening<boolean>();
			const { client } = await connect({
				handlers: {
					async clientStream(requests, { signal }) {
						void abortOf(signal).then(() => aborted.resolve(true));
						await drained(requests);
						return forever();
					},
				},
			});
			async function* requests() {
				yield { text: "a" };
				throw new Error("no more ideas");
			}
			await errorOf(client.clientStream(requests()));
			return aborted.promise;
		},
		outcome: true,
	},
	{
		does: "ends the requests of an aborted call on both sides",
		async play(connect) {
			const got = happening();
			const read = happening<unknown>();
			const { client } = await connect({
				handlers: {
					async clientStream(requests) {
						try {
							for await (const _ of requests) {
								got.resolve();
							}
							read.resolve("the end");
						} catch (error) {
							read.resolve(error instanceof Error);
						}
						return {};
					},
				},
			});
			const controller = new AbortController();
			async function* requests() {
				yield { text: "a" };
				await forever();
			}
			const call = errorOf(client.clientStream(requests(), { signal: controller.signal }));
			await got.promise;
			controller.abort();
			return [await call, await read.promise];
		},
		outcome: ["Canceled: This operation was aborted", true],
		accident: {
			on: "every wire",
			outcome: ["Canceled: This operation was aborted", "the end"],
			why: cutOffLooksComplete,
		},
	},
	{
		does: "fails a call at its deadline while its handler waits for requests",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async clientStream(requests) {
						await drained(requests);
						return {};
					},
				},
			});
			async function* requests() {
				yield { text: "a" };
				await forever();
			}
			return errorOf(client.clientStream(requests(), { timeoutMs: 30 }));
		},
		outcome: "DeadlineExceeded: the operation timed out",
	},
	{
		does: "takes requests from an iterable that is not a generator",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async clientStream(requests) {
						return { text: (await textsOf(requests)).join(" ") };
					},
				},
			});
			let left = 2;
			const iterator = {
				next: async () =>
					left-- > 0
						? { done: false as const, value: { text: `left ${left}` } }
						: { done: true as const, value: undefined },
				throw: async (error: unknown) => Promise.reject(error),
				return: async () => ({ done: true as const, value: undefined }),
			};
			const requests = { [Symbol.asyncIterator]: () => iterator };
			return (await client.clientStream(requests)).text;
		},
		outcome: "left 1 left 0",
	},
];
