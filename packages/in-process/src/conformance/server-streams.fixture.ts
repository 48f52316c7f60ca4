import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { ProbeService } from "../../testdata/src/gen/probe_pb.ts";
import {
	abortOf,
	type Behavior,
	caught,
	codeOf,
	drained,
	errorOf,
	forever,
	happening,
	texts,
	textsOf,
} from "./behavior.fixture.ts";

/** Server-streaming calls. */
export const serverStreamBehaviors: readonly Behavior[] = [
	{
		does: "delivers the messages of a handler in order",
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
		does: "ends a stream that has no messages",
		async play(connect) {
			const { client } = await connect({ handlers: { async *serverStream() {} } });
			return textsOf(client.serverStream({}));
		},
		outcome: [],
	},
	{
		does: "delivers the messages of an iterable that is not a generator",
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
		does: "starts a stream when it is called, not when it is read",
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
		does: "delivers headers with the first message and trailers after the last",
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
		does: "delivers the headers and trailers of a stream without messages",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					// biome-ignore lint/correctness/useYield: it has no messages
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
		does: "does not deliver headers that are set after the first message",
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
		does: "delivers the messages before an error, then the error",
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
		does: "delivers headers even when a stream fails before its first message",
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
		does: "delivers headers and trailers in the metadata of a stream's error",
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
		does: "hides the message of a stream's error that is not a ConnectError",
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
		does: "delivers an error that a handler throws instead of returning a stream",
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
		does: "fails a stream whose handler does not return a stream",
		async play(connect) {
			const nothing = JSON.parse("{}").nothing;
			const { client } = await connect({ handlers: { serverStream: () => nothing } });
			return textsOf(client.serverStream({}));
		},
		outcome: ["Internal: internal error"],
	},
	{
		does: "keeps a stream ended after its end was read",
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
		does: "reads in order when reads of the transport's stream overlap",
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
			return codeOf(await caught(streamOf(transport, texts())));
		},
		outcome: "Unimplemented",
	},
	{
		does: "fails a server-streaming call with two requests",
		async play(connect) {
			const { transport } = await connect({ handlers: { async *serverStream() {} } });
			return codeOf(await caught(streamOf(transport, texts("1", "2"))));
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
		does: "serves streams of one client concurrently",
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
	{
		does: "continues where another reader of the same stream stopped",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield { text: "1" };
						yield { text: "2" };
					},
				},
			});
			const stream = client.serverStream({});
			const one = await stream[Symbol.asyncIterator]().next();
			const two = await stream[Symbol.asyncIterator]().next();
			return [one.value?.text, two.value?.text];
		},
		outcome: ["1", "2"],
	},
	{
		does: "gives an error to the first of overlapping reads, and the end to the others",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield { text: "first" };
						throw new ConnectError("as planned", Code.Aborted);
					},
				},
			});
			const reader = client.serverStream({})[Symbol.asyncIterator]();
			const [first, ...others] = [reader.next(), reader.next(), reader.next(), reader.next()];
			const failed = await errorOf(others[0] ?? forever());
			return [(await first)?.value?.text, failed, await Promise.all(others.slice(1))];
		},
		outcome: [
			"first",
			"Aborted: as planned",
			[
				{ done: true, value: undefined },
				{ done: true, value: undefined },
			],
		],
	},
	{
		does: "throws a stream's error once, even if it came before a message",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					// biome-ignore lint/correctness/useYield: it fails before that
					async *serverStream() {
						throw new ConnectError("as planned", Code.Aborted);
					},
				},
			});
			const reader = client.serverStream({})[Symbol.asyncIterator]();
			return [await errorOf(reader.next()), await reader.next(), await reader.next()];
		},
		outcome: [
			"Aborted: as planned",
			{ done: true, value: undefined },
			{ done: true, value: undefined },
		],
	},
	{
		does: "reports trailers once, however often the end is read",
		async play(connect) {
			const seen: (string | null)[] = [];
			const { client } = await connect({
				handlers: {
					async *serverStream(_, { responseTrailer }) {
						responseTrailer.set("x-trail", "t");
						yield { text: "only" };
					},
				},
			});
			const onTrailer = (trailers: Headers) => seen.push(trailers.get("x-trail"));
			const reader = client.serverStream({}, { onTrailer })[Symbol.asyncIterator]();
			const ends = await Promise.all([reader.next(), reader.next(), reader.next()]);
			await reader.next();
			return [ends.map(({ done }) => done ?? false), seen];
		},
		outcome: [[false, true, true], ["t"]],
	},
	{
		does: "fails a read whose onHeader or onTrailer throws, and ends the stream",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield { text: "only" };
					},
				},
			});
			const throwing = () => {
				throw new Error("not these");
			};
			const outcomes: unknown[] = [];
			for (const options of [{ onHeader: throwing }, { onTrailer: throwing }]) {
				const stream = client.serverStream({}, options);
				outcomes.push(await errorOf(drained(stream)), await textsOf(stream));
			}
			return outcomes;
		},
		outcome: [
			"not a ConnectError: Error: not these",
			[],
			"not a ConnectError: Error: not these",
			[],
		],
	},
];

/** Calls the streaming method with the given requests, and reads the response to its end. */
async function streamOf(
	transport: Transport,
	requests: AsyncIterable<{ readonly text: string }>,
): Promise<void> {
	const method = ProbeService.method.serverStream;
	const response = await transport.stream(method, undefined, undefined, undefined, requests);
	await drained(response.message);
}
