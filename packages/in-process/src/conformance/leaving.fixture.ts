import type { HandlerContext, Interceptor } from "@connectrpc/connect";
import {
	abortOf,
	type Behavior,
	type Connect,
	codeOf,
	drained,
	errorOf,
	forever,
	happening,
} from "./behavior.fixture.ts";

/** A stream of one message that stays open and reports how its handler ends. */
async function connectCanceling(connect: Connect, caller: Interceptor[] = []) {
	const running = happening<HandlerContext>();
	const aborted = happening<unknown>();
	const cleaned = happening<boolean>();
	async function* handle(context: HandlerContext) {
		void abortOf(context.signal).then(aborted.resolve);
		running.resolve(context);
		try {
			yield { text: "first" };
			await abortOf(context.signal);
		} finally {
			cleaned.resolve(context.signal.aborted);
		}
	}
	const { client } = await connect({
		caller,
		handlers: {
			unary: () => ({ text: "still there" }),
			serverStream: (_, context) => handle(context),
		},
	});
	return {
		client,
		running: running.promise,
		/** The code of the reason of the handler's signal. */
		aborted: aborted.promise.then(codeOf),
		/** Whether the signal had aborted when the handler's `finally` ran. */
		cleaned: cleaned.promise,
	};
}

const passing: Interceptor = (next) => (request) => next(request);

/** How a stream ends when its reader leaves it. */
export const leavingBehaviors: readonly Behavior[] = [
	{
		does: "ends a stream that its reader leaves by break, on both sides",
		clients: "createInProcessClient",
		async play(connect) {
			const { client, aborted, cleaned } = await connectCanceling(connect);
			for await (const _ of client.serverStream({})) {
				break;
			}
			return [await aborted, await cleaned];
		},
		outcome: ["Canceled", true],
	},
	{
		does: "ends a stream whose reader throws",
		clients: "createInProcessClient",
		async play(connect) {
			const { client, aborted, cleaned } = await connectCanceling(connect);
			const reading = (async () => {
				for await (const _ of client.serverStream({})) {
					throw new Error("enough");
				}
			})();
			return [await errorOf(reading), await aborted, await cleaned];
		},
		outcome: ["not a ConnectError: Error: enough", "Canceled", true],
	},
	{
		does: "ends a stream behind interceptors that its reader leaves",
		clients: "createInProcessClient",
		async play(connect) {
			const { client, aborted, cleaned } = await connectCanceling(connect, [passing, passing]);
			for await (const _ of client.serverStream({})) {
				break;
			}
			return [await aborted, await cleaned];
		},
		outcome: ["Canceled", true],
	},
	{
		does: "runs the finally of an interceptor's stream when its reader leaves",
		clients: "createInProcessClient",
		async play(connect) {
			let isCleaned = false;
			async function* through<T>(messages: AsyncIterable<T>) {
				try {
					yield* messages;
				} finally {
					isCleaned = true;
				}
			}
			const wrapping: Interceptor = (next) => async (request) => {
				const response = await next(request);
				return response.stream ? { ...response, message: through(response.message) } : response;
			};
			const { client, aborted } = await connectCanceling(connect, [wrapping]);
			for await (const _ of client.serverStream({})) {
				break;
			}
			return [isCleaned, await aborted];
		},
		outcome: [true, "Canceled"],
	},
	{
		does: "ends a stream that its reader leaves before the first message",
		clients: "createInProcessClient",
		async play(connect) {
			const running = happening();
			const aborted = happening<unknown>();
			const { client } = await connect({
				handlers: {
					// biome-ignore lint/correctness/useYield: it never responds
					async *serverStream(_, { signal }) {
						void abortOf(signal).then(aborted.resolve);
						running.resolve();
						await forever();
					},
				},
			});
			const reader = client.serverStream({})[Symbol.asyncIterator]();
			const waiting = [reader.next(), reader.next()];
			await running.promise;
			const left = await reader.return?.();
			return [left, await Promise.all(waiting), codeOf(await aborted.promise)];
		},
		outcome: [
			{ done: true, value: undefined },
			[
				{ done: true, value: undefined },
				{ done: true, value: undefined },
			],
			"Canceled",
		],
	},
	{
		does: "ends a stream behind interceptors that its reader leaves before the first message",
		clients: "createInProcessClient",
		async play(connect) {
			const running = happening();
			const aborted = happening<unknown>();
			const { client } = await connect({
				caller: [passing],
				handlers: {
					// biome-ignore lint/correctness/useYield: it never responds
					async *serverStream(_, { signal }) {
						void abortOf(signal).then(aborted.resolve);
						running.resolve();
						await forever();
					},
				},
			});
			const reader = client.serverStream({})[Symbol.asyncIterator]();
			const waiting = reader.next();
			await running.promise;
			await reader.return?.();
			return [await waiting, codeOf(await aborted.promise)];
		},
		outcome: [{ done: true, value: undefined }, "Canceled"],
	},
	{
		does: "makes no call for an interceptor after its caller has left",
		clients: "createInProcessClient",
		async play(connect) {
			let calls = 0;
			const entered = happening();
			const release = happening();
			const outcome = happening<unknown>();
			const slow: Interceptor = (next) => async (request) => {
				entered.resolve();
				await release.promise;
				const response = next(request);
				outcome.resolve(errorOf(response));
				return response;
			};
			const { client } = await connect({
				caller: [slow],
				handlers: {
					async *serverStream() {
						calls += 1;
						yield {};
					},
				},
			});
			const reader = client.serverStream({})[Symbol.asyncIterator]();
			const waiting = reader.next();
			await entered.promise;
			await reader.return?.();
			const read = await waiting;
			release.resolve();
			return [read, await outcome.promise, calls];
		},
		outcome: [{ done: true, value: undefined }, "Canceled: the caller stopped reading", 0],
	},
	{
		does: "ends a stream that nobody has read when its reader leaves",
		clients: "createInProcessClient",
		async play(connect) {
			const { client, running, aborted } = await connectCanceling(connect);
			const reader = client.serverStream({})[Symbol.asyncIterator]();
			await running;
			await reader.return?.();
			return [await reader.next(), await aborted];
		},
		outcome: [{ done: true, value: undefined }, "Canceled"],
	},
	{
		does: "ends a pending read when the reader leaves",
		clients: "createInProcessClient",
		async play(connect) {
			const { client, aborted } = await connectCanceling(connect);
			const reader = client.serverStream({})[Symbol.asyncIterator]();
			const first = await reader.next();
			const waiting = [reader.next(), reader.next()];
			await reader.return?.();
			return [first.done, await Promise.all(waiting), await reader.next(), await aborted];
		},
		outcome: [
			false,
			[
				{ done: true, value: undefined },
				{ done: true, value: undefined },
			],
			{ done: true, value: undefined },
			"Canceled",
		],
	},
	{
		does: "delivers no trailers to a reader that has left",
		clients: "createInProcessClient",
		async play(connect) {
			const seen: string[] = [];
			const { client, aborted } = await connectCanceling(connect);
			const stream = client.serverStream(
				{},
				{ onHeader: () => seen.push("header"), onTrailer: () => seen.push("trailer") },
			);
			for await (const { text } of stream) {
				seen.push(text);
				break;
			}
			return [await aborted, seen];
		},
		outcome: ["Canceled", ["header", "first"]],
	},
	{
		does: "ends one stream and not another when a reader leaves",
		clients: "createInProcessClient",
		async play(connect) {
			const { client, aborted } = await connectCanceling(connect);
			const controller = new AbortController();
			const neighbor = client
				.serverStream({}, { signal: controller.signal })
				[Symbol.asyncIterator]();
			const { value: first } = await neighbor.next();
			for await (const _ of client.serverStream({})) {
				break;
			}
			await aborted;
			const { text } = await client.unary({});
			const waiting = errorOf(neighbor.next());
			controller.abort();
			return [first?.text, text, await waiting];
		},
		outcome: ["first", "still there", "Canceled: This operation was aborted"],
	},
	{
		does: "does not affect a finished stream when its reader leaves",
		clients: "createInProcessClient",
		async play(connect) {
			const aborted = happening<unknown>();
			const { client } = await connect({
				handlers: {
					async *serverStream(_, { signal }) {
						void abortOf(signal).then(aborted.resolve);
						yield { text: "only" };
					},
				},
			});
			const stream = client.serverStream({});
			await drained(stream);
			await stream[Symbol.asyncIterator]().return?.();
			return codeOf(await aborted.promise);
		},
		outcome: "not a ConnectError",
	},
	{
		does: "leaves a stream whose reader's onHeader throws",
		clients: "createInProcessClient",
		async play(connect) {
			const { client, aborted } = await connectCanceling(connect);
			const stream = client.serverStream(
				{},
				{
					onHeader: () => {
						throw new Error("not these");
					},
				},
			);
			return [await errorOf(drained(stream)), await aborted];
		},
		outcome: ["not a ConnectError: Error: not these", "Canceled"],
	},
];
