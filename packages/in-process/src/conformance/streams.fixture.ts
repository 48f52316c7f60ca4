import { Code, ConnectError } from "@connectrpc/connect";
import { ProbeService } from "../../testdata/src/gen/probe_pb.ts";
import {
	abortOf,
	type Behaviour,
	caught,
	codeOf,
	drained,
	errorOf,
	forever,
	happening,
	seen,
	texts,
	textsOf,
} from "./behaviour.fixture.ts";

/** Requests without end that say what became of them. They are large, so that no socket takes all. */
function endlessRequests() {
	const ended = happening<string>();
	async function* requests() {
		let how = "returned";
		try {
			for (;;) {
				yield { text: "more".repeat(10_000) };
			}
		} catch (error) {
			how = `threw ${seen(ConnectError.from(error))}`;
		} finally {
			ended.resolve(how);
		}
	}
	return { requests: requests(), ended: ended.promise };
}

const cutOffLooksComplete =
	"a stream that the caller resets looks to the server's reader like one that has ended; a handler that takes a part for the whole may commit half of something";

/** Methods with streams of responses. */
export const serverStreamBehaviours: readonly Behaviour[] = [
	{
		does: "brings the messages of a handler in order",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream(request) {
						for (let number = 1; number <= request.number; number++) {
							yield { text: `${request.text}${number}` };
						}
					},
				},
			});
			return textsOf(client.serverStream({ text: "m", number: 3 }));
		},
		outcome: ["m1", "m2", "m3"],
	},
	{
		does: "ends a stream without messages",
		async play(connect) {
			const { client } = await connect({ handlers: { async *serverStream() {} } });
			return textsOf(client.serverStream({}));
		},
		outcome: [],
	},
	{
		does: "brings the messages of an iterable that is not a generator",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					serverStream: () => ({
						[Symbol.asyncIterator]() {
							let left = 2;
							return {
								next: async () =>
									left-- > 0
										? { done: false, value: { text: `left ${left}` } }
										: { done: true, value: undefined },
							};
						},
					}),
				},
			});
			return textsOf(client.serverStream({}));
		},
		outcome: ["left 1", "left 0"],
	},
	{
		does: "starts a stream when it is called for, not when it is read",
		async play(connect) {
			const running = happening<string>();
			const { client } = await connect({
				handlers: {
					async *serverStream(request) {
						running.resolve(request.text);
						yield {};
					},
				},
			});
			const stream = client.serverStream({ text: "started" });
			const started = await running.promise;
			await drained(stream);
			return started;
		},
		outcome: "started",
	},
	{
		does: "brings headers with the first message and trailers after the last",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream(_, context) {
						context.responseHeader.set("x-head", "h");
						yield { text: "1" };
						yield { text: "2" };
						context.responseTrailer.set("x-trail", "t");
					},
				},
			});
			const saw: unknown[] = [];
			const stream = client.serverStream(
				{},
				{
					onHeader: (headers) => saw.push(headers.get("x-head")),
					onTrailer: (trailers) => saw.push(trailers.get("x-trail")),
				},
			);
			for await (const { text } of stream) {
				saw.push(text);
			}
			return saw;
		},
		outcome: ["h", "1", "2", "t"],
	},
	{
		does: "brings the headers and trailers of a stream without messages",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					// biome-ignore lint/correctness/useYield: it has nothing to say
					async *serverStream(_, context) {
						context.responseHeader.set("x-head", "h");
						context.responseTrailer.set("x-trail", "t");
					},
				},
			});
			const saw: unknown[] = [];
			await drained(
				client.serverStream(
					{},
					{
						onHeader: (headers) => saw.push(headers.get("x-head")),
						onTrailer: (trailers) => saw.push(trailers.get("x-trail")),
					},
				),
			);
			return saw;
		},
		outcome: ["h", "t"],
	},
	{
		does: "does not bring headers that are set after the first message",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream(_, context) {
						yield {};
						context.responseHeader.set("x-head", "late");
						yield {};
					},
				},
			});
			let header = new Headers();
			await drained(
				client.serverStream(
					{},
					{
						onHeader: (headers) => {
							header = headers;
						},
					},
				),
			);
			return header.get("x-head");
		},
		outcome: null,
	},
	{
		does: "brings the messages before an error, then the error",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield { text: "1" };
						yield { text: "2" };
						throw new ConnectError("no third", Code.OutOfRange);
					},
				},
			});
			return textsOf(client.serverStream({}));
		},
		outcome: ["1", "2", "OutOfRange: no third"],
	},
	{
		does: "brings headers even when a stream fails before its first message",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					// biome-ignore lint/correctness/useYield: it fails before
					async *serverStream(_, context) {
						context.responseHeader.set("x-head", "h");
						throw new ConnectError("at once", Code.Aborted);
					},
				},
			});
			const saw: unknown[] = [];
			const stream = client.serverStream(
				{},
				{
					onHeader: (headers) => saw.push(headers.get("x-head")),
					onTrailer: () => saw.push("trailers"),
				},
			);
			saw.push(await textsOf(stream));
			return saw;
		},
		outcome: ["h", ["Aborted: at once"]],
	},
	{
		does: "brings headers and trailers in the metadata of a stream's error",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream(_, context) {
						context.responseHeader.set("x-head", "h");
						yield {};
						context.responseTrailer.set("x-trail", "t");
						throw new ConnectError("after one", Code.Aborted, { "x-own": "o" });
					},
				},
			});
			const { metadata } = await caught(drained(client.serverStream({})));
			return [metadata.get("x-head"), metadata.get("x-trail"), metadata.get("x-own")];
		},
		outcome: ["h", "t", "o"],
	},
	{
		does: "says nothing of a stream's error that is not a ConnectError",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield { text: "1" };
						throw new Error("the password is 1234");
					},
				},
			});
			return textsOf(client.serverStream({}));
		},
		outcome: ["1", "Internal: internal error"],
	},
	{
		does: "brings an error that a handler throws instead of returning a stream",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					serverStream: () => {
						throw new ConnectError("no stream", Code.PermissionDenied);
					},
				},
			});
			return textsOf(client.serverStream({}));
		},
		outcome: ["PermissionDenied: no stream"],
	},
	{
		does: "fails a stream whose handler returns what is no stream",
		async play(connect) {
			const nothing = JSON.parse("{}").nothing;
			const { client } = await connect({ handlers: { serverStream: () => nothing } });
			return textsOf(client.serverStream({}));
		},
		outcome: ["Internal: internal error"],
	},
	{
		does: "reads a stream's end once and for all",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield {};
					},
				},
			});
			const reader = client.serverStream({})[Symbol.asyncIterator]();
			const dones: unknown[] = [];
			for (let read = 0; read < 4; read++) {
				dones.push((await reader.next()).done);
			}
			return dones;
		},
		outcome: [false, true, true, true],
	},
	{
		does: "reads in order when reads overlap",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield* texts("1", "2", "3");
					},
				},
			});
			const reader = client.serverStream({})[Symbol.asyncIterator]();
			const results = await Promise.all([1, 2, 3, 4].map(() => reader.next()));
			return results.map((result) => (result.done ? "end" : result.value.text));
		},
		outcome: ["1", "2", "3", "end"],
	},
	{
		does: "reads in order when reads of the transport's own stream overlap",
		async play(connect) {
			const { transport } = await connect({
				handlers: {
					async *serverStream() {
						yield* texts("1", "2", "3");
					},
				},
			});
			const method = ProbeService.method.serverStream;
			const response = await transport.stream(method, undefined, undefined, undefined, texts("q"));
			const reader = response.message[Symbol.asyncIterator]();
			const results = await Promise.all([1, 2, 3, 4].map(() => reader.next()));
			return results.map((result) => (result.done ? "end" : result.value.text));
		},
		outcome: ["1", "2", "3", "end"],
	},
	{
		does: "fails a server-streaming call without a request",
		async play(connect) {
			const { transport } = await connect({ handlers: { async *serverStream() {} } });
			const method = ProbeService.method.serverStream;
			const response = await transport.stream(method, undefined, undefined, undefined, texts());
			return codeOf(await caught(drained(response.message)));
		},
		outcome: "Unimplemented",
	},
	{
		does: "fails a server-streaming call with two requests",
		async play(connect) {
			const { transport } = await connect({ handlers: { async *serverStream() {} } });
			const method = ProbeService.method.serverStream;
			const two = texts("1", "2");
			const response = await transport.stream(method, undefined, undefined, undefined, two);
			return codeOf(await caught(drained(response.message)));
		},
		outcome: "Unimplemented",
	},
	{
		does: "aborts a streaming handler's signal when its stream has ended",
		async play(connect) {
			const over = happening<boolean>();
			const { client } = await connect({
				handlers: {
					async *serverStream(_, { signal }) {
						void abortOf(signal).then(() => over.resolve(signal.aborted));
						yield { text: `${signal.aborted}` };
					},
				},
			});
			return [await textsOf(client.serverStream({})), await over.promise];
		},
		outcome: [["false"], true],
	},
	{
		does: "serves streams of one client side by side",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream({ text, number }) {
						for (let count = 0; count < number; count++) {
							yield { text: `${text}${count}` };
						}
					},
				},
			});
			return Promise.all([
				textsOf(client.serverStream({ text: "a", number: 3 })),
				textsOf(client.serverStream({ text: "b", number: 2 })),
			]);
		},
		outcome: [
			["a0", "a1", "a2"],
			["b0", "b1"],
		],
	},
];

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

/** Methods with streams both ways. */
export const bidiBehaviours: readonly Behaviour[] = [
	{
		does: "answers each request while more are to come",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							yield { text: `re: ${text}` };
						}
					},
				},
			});
			let answered = happening();
			async function* requests() {
				for (const text of ["a", "b", "c"]) {
					yield { text };
					await answered.promise;
					answered = happening();
				}
			}
			const answers: string[] = [];
			for await (const { text } of client.bidi(requests())) {
				answers.push(text);
				answered.resolve();
			}
			return answers;
		},
		outcome: ["re: a", "re: b", "re: c"],
	},
	{
		does: "lets a handler speak first",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						yield { text: "hello" };
						yield { text: (await textsOf(requests)).join(" ") };
					},
				},
			});
			const greeted = happening();
			async function* requests() {
				await greeted.promise;
				yield { text: "hello too" };
			}
			const heard: string[] = [];
			for await (const { text } of client.bidi(requests())) {
				heard.push(text);
				greeted.resolve();
			}
			return heard;
		},
		outcome: ["hello", "hello too"],
	},
	{
		does: "lets a handler answer after all requests",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						const all = await textsOf(requests);
						yield* texts(...all.toReversed());
					},
				},
			});
			return textsOf(client.bidi(texts("1", "2", "3")));
		},
		outcome: ["3", "2", "1"],
	},
	{
		does: "lets a handler end before the requests do, and ends them",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							yield { text: text.slice(0, 4) };
							break;
						}
					},
				},
			});
			const { requests, ended } = endlessRequests();
			return [await textsOf(client.bidi(requests)), await ended];
		},
		outcome: [["more"], "returned"],
	},
	{
		does: "brings an error amid messages both ways",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							if (text === "b") {
								throw new ConnectError("not b", Code.InvalidArgument);
							}
							yield { text };
						}
					},
				},
			});
			return textsOf(client.bidi(texts("a", "b", "c")));
		},
		outcome: ["a", "InvalidArgument: not b"],
	},
	{
		does: "fails a stream both ways whose requests throw",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							yield { text };
						}
					},
				},
			});
			const answered = happening();
			async function* requests() {
				yield { text: "a" };
				await answered.promise;
				throw new ConnectError("no more ideas", Code.DataLoss);
			}
			const heard: string[] = [];
			const reading = (async () => {
				for await (const { text } of client.bidi(requests())) {
					heard.push(text);
					answered.resolve();
				}
			})();
			return [await errorOf(reading), heard];
		},
		outcome: ["DataLoss: no more ideas", ["a"]],
	},
	{
		does: "ends a stream both ways that its caller aborts",
		async play(connect) {
			const cleaned = happening<string>();
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						try {
							for await (const { text } of requests) {
								yield { text };
							}
						} finally {
							cleaned.resolve("cleaned up");
						}
					},
				},
			});
			const controller = new AbortController();
			async function* requests() {
				yield { text: "a" };
				await forever();
			}
			const heard: string[] = [];
			const reading = (async () => {
				for await (const { text } of client.bidi(requests(), { signal: controller.signal })) {
					heard.push(text);
					controller.abort();
				}
			})();
			return [await errorOf(reading), heard, await cleaned.promise];
		},
		outcome: ["Canceled: This operation was aborted", ["a"], "cleaned up"],
	},
	{
		does: "throws the caller's own abort into its waiting requests",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							yield { text };
						}
					},
				},
			});
			const controller = new AbortController();
			const { requests, ended } = endlessRequests();
			const reading = (async () => {
				for await (const _ of client.bidi(requests, { signal: controller.signal })) {
					controller.abort(new ConnectError("stop", Code.Canceled));
				}
			})();
			return [await errorOf(reading), await ended];
		},
		outcome: ["Canceled: stop", "threw Canceled: stop"],
	},
	{
		does: "ends a stream both ways in which nobody says anything",
		async play(connect) {
			const { client } = await connect({ handlers: { async *bidi() {} } });
			return textsOf(client.bidi(texts()));
		},
		outcome: [],
	},
	{
		does: "says nothing more to a handler that has broken off its requests",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *bidi(requests) {
						for await (const { text } of requests) {
							yield { text };
							break;
						}
						yield { text: `${(await textsOf(requests)).length} more` };
					},
				},
			});
			return textsOf(client.bidi(texts("a", "b")));
		},
		outcome: ["a", "0 more"],
	},
];
