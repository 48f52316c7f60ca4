import { Code, ConnectError } from "@connectrpc/connect";
import { FakeClock } from "@plinth/runtime/testing";
import {
	abortOf,
	type Behavior,
	caught,
	codeOf,
	connectHanging,
	errorOf,
	forever,
	happening,
	textsOf,
	throwOnAbort,
} from "./behavior.fixture.ts";

/** Short, because it passes in real time. */
const timeoutMs = 30;

/**
 * For behaviors in which something must happen before the deadline. In-process it passes on a fake
 * clock; over a socket it leaves room for a slow machine.
 */
const ampleTimeoutMs = 1_000;

/** How calls end at their deadline. */
export const deadlineBehaviors: readonly Behavior[] = [
	{
		does: "fails a call at its deadline",
		async play(connect) {
			const { client } = await connect({ handlers: { unary: () => forever() } });
			return errorOf(client.unary({}, { timeoutMs }));
		},
		outcome: "DeadlineExceeded: the operation timed out",
	},
	{
		does: "fails a call at the transport's own timeout",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: () => forever() },
				defaultTimeoutMs: timeoutMs,
			});
			return errorOf(client.unary({}));
		},
		outcome: "DeadlineExceeded: the operation timed out",
	},
	{
		does: "aborts the handler's signal at the deadline",
		async play(connect) {
			const clock = new FakeClock();
			const { client, running, aborted } = await connectHanging(connect, clock);
			const call = errorOf(client.unary({}, { timeoutMs: ampleTimeoutMs }));
			const { signal } = await running;
			const before = signal.aborted;
			await clock.advanceAsync(ampleTimeoutMs);
			await aborted;
			return [before, signal.aborted, await call];
		},
		outcome: [false, true, "DeadlineExceeded: the operation timed out"],
	},
	{
		does: "fails a call whose handler throws its signal's reason at the deadline",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: (_, { signal }) => throwOnAbort(signal) },
			});
			return codeOf(await caught(client.unary({}, { timeoutMs })));
		},
		outcome: "DeadlineExceeded",
	},
	{
		does: "tells a handler after its deadline that no time is left",
		async play(connect) {
			const left = happening<boolean>();
			let isReached = false;
			const { client } = await connect({
				handlers: {
					unary: async (_, { signal, timeoutMs: leftMs }) => {
						isReached = true;
						await abortOf(signal);
						// Over a network, the caller's cancellation may arrive before the handler's own deadline.
						while ((leftMs() ?? Number.NaN) >= 5) {
							await new Promise((resolve) => setTimeout(resolve, 1));
						}
						left.resolve((leftMs() ?? Number.NaN) < 5);
						return {};
					},
				},
			});
			// On a slow machine a call may reach its deadline before it reaches the handler.
			while (!isReached) {
				await errorOf(client.unary({}, { timeoutMs }));
			}
			return left.promise;
		},
		outcome: true,
	},
	{
		does: "responds to a call with a deadline in time",
		async play(connect) {
			const { client } = await connect({ handlers: { unary: () => ({ text: "in time" }) } });
			return (await client.unary({}, { timeoutMs: 300_000 })).text;
		},
		outcome: "in time",
	},
	{
		does: "fails a call whose signal aborts before its deadline",
		async play(connect) {
			const { client, running } = await connectHanging(connect);
			const controller = new AbortController();
			const options = { signal: controller.signal, timeoutMs: 300_000 };
			const call = errorOf(client.unary({}, options));
			await running;
			controller.abort("before");
			return call;
		},
		outcome: "Canceled: before",
	},
	{
		does: "fails a stream at its deadline, messages before it delivered",
		async play(connect) {
			const clock = new FakeClock();
			const { client } = await connect({
				clock,
				handlers: {
					async *serverStream() {
						yield { text: "first" };
						await forever();
					},
				},
			});
			const stream = client.serverStream({}, { timeoutMs: ampleTimeoutMs });
			const reader = stream[Symbol.asyncIterator]();
			const first = await reader.next();
			const end = errorOf(reader.next());
			await clock.advanceAsync(ampleTimeoutMs);
			return [first.done !== true && first.value.text, await end];
		},
		outcome: ["first", "DeadlineExceeded: the operation timed out"],
	},
	{
		does: "fails a stream that reached its deadline before its first message",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					// biome-ignore lint/correctness/useYield: it never responds
					async *serverStream() {
						await forever();
					},
				},
			});
			return textsOf(client.serverStream({}, { timeoutMs }));
		},
		outcome: ["DeadlineExceeded: the operation timed out"],
	},
	{
		does: "fails the next read of a stream whose deadline passed while nobody read",
		async play(connect) {
			const aborted = happening();
			const clock = new FakeClock();
			const { client } = await connect({
				clock,
				handlers: {
					async *serverStream(_, { signal }) {
						void abortOf(signal).then(() => aborted.resolve());
						yield { text: "first" };
						await forever();
					},
				},
			});
			const stream = client.serverStream({}, { timeoutMs: ampleTimeoutMs });
			const reader = stream[Symbol.asyncIterator]();
			const first = await reader.next();
			await clock.advanceAsync(ampleTimeoutMs);
			await aborted.promise;
			return [first.done !== true && first.value.text, await errorOf(reader.next())];
		},
		outcome: ["first", "DeadlineExceeded: the operation timed out"],
	},
];

/** How calls end when their server shuts down. */
export const shutdownBehaviors: readonly Behavior[] = [
	{
		does: "fails calls whose handlers stop at a shutdown, with its error",
		async play(connect) {
			const shutdown = new AbortController();
			const running = happening();
			const { client } = await connect({
				handlers: {
					unary: (_, { signal }) => {
						running.resolve();
						return throwOnAbort(signal);
					},
				},
				shutdownSignal: shutdown.signal,
			});
			const call = errorOf(client.unary({}));
			await running.promise;
			shutdown.abort(new ConnectError("going down", Code.Unavailable));
			return call;
		},
		outcome: "Unavailable: going down",
	},
	{
		does: "fails streams whose handlers stop at a shutdown, with its error",
		async play(connect) {
			const shutdown = new AbortController();
			const { client } = await connect({
				handlers: {
					async *serverStream(_, { signal }) {
						yield { text: "first" };
						await throwOnAbort(signal);
					},
				},
				shutdownSignal: shutdown.signal,
			});
			const texts: string[] = [];
			const reading = (async () => {
				for await (const { text } of client.serverStream({})) {
					texts.push(text);
					shutdown.abort(new ConnectError("going down", Code.Unavailable));
				}
			})();
			return [await errorOf(reading), texts];
		},
		outcome: ["Unavailable: going down", ["first"]],
	},
];
