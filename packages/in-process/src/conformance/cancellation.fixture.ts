import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import {
	abortOf,
	type Behaviour,
	type Connect,
	caught,
	codeOf,
	drained,
	errorOf,
	forever,
	happening,
	seen,
	textsOf,
	throwOnAbort,
} from "./behaviour.fixture.ts";

/** Short, for it passes on the machine's clock. */
const timeoutMs = 30;

/** A unary handler that says when it runs, what its signal says, and never answers. */
async function connectHanging(connect: Connect) {
	const running = happening<HandlerContext>();
	const aborted = happening<unknown>();
	const connection = await connect({
		handlers: {
			unary: async (_, context) => {
				void abortOf(context.signal).then(aborted.resolve);
				running.resolve(context);
				return forever();
			},
		},
	});
	return { ...connection, running: running.promise, aborted: aborted.promise };
}

/** Aborts a running unary call with the given reason, and returns what its caller gets. */
async function abortedWith(connect: Connect, reason?: unknown): Promise<unknown> {
	const { client, running } = await connectHanging(connect);
	const controller = new AbortController();
	const call = errorOf(client.unary({}, { signal: controller.signal }));
	await running;
	controller.abort(reason);
	return call;
}

/** How calls end before their time. */
export const cancellationBehaviours: readonly Behaviour[] = [
	{
		does: "fails a call whose signal has aborted already, without running its handler",
		async play(connect) {
			let ran = false;
			const { client } = await connect({
				handlers: {
					unary: () => {
						ran = true;
						return {};
					},
				},
			});
			const outcome = await errorOf(client.unary({}, { signal: AbortSignal.abort() }));
			const ranThen = ran;
			await client.unary({}, { signal: new AbortController().signal });
			return [outcome, ranThen, ran];
		},
		outcome: ["Canceled: This operation was aborted", false, true],
	},
	{
		does: "fails a stream whose signal has aborted already, without running its handler",
		async play(connect) {
			let ran = false;
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						ran = true;
						yield {};
					},
				},
			});
			const outcome = await textsOf(client.serverStream({}, { signal: AbortSignal.abort() }));
			return [outcome, ran];
		},
		outcome: [["Canceled: This operation was aborted"], false],
	},
	{
		does: "fails a running call with canceled when its caller aborts",
		play: (connect) => abortedWith(connect),
		outcome: "Canceled: This operation was aborted",
	},
	{
		does: "fails an aborted call with the message of its caller's reason",
		play: (connect) => abortedWith(connect, new Error("lost interest")),
		outcome: "Canceled: lost interest",
	},
	{
		does: "fails an aborted call with its caller's reason, where that is a ConnectError",
		play: (connect) => abortedWith(connect, new ConnectError("moved on", Code.FailedPrecondition)),
		outcome: "FailedPrecondition: moved on",
	},
	{
		does: "fails an aborted call with the text of a reason that is no error",
		play: (connect) => abortedWith(connect, "just so"),
		outcome: "Canceled: just so",
	},
	{
		does: "aborts the handler's signal when the caller aborts",
		async play(connect) {
			const { client, running, aborted } = await connectHanging(connect);
			const controller = new AbortController();
			const call = errorOf(client.unary({}, { signal: controller.signal }));
			await running;
			controller.abort();
			await call;
			return codeOf(await aborted);
		},
		outcome: "Canceled",
	},
	{
		does: "keeps the caller's reason from the handler",
		async play(connect) {
			const { client, running, aborted } = await connectHanging(connect);
			const controller = new AbortController();
			const call = errorOf(client.unary({}, { signal: controller.signal }));
			await running;
			controller.abort(new ConnectError("private", Code.DataLoss));
			await call;
			return seen(await aborted).includes("private");
		},
		outcome: false,
	},
	{
		does: "does not wait for a handler that ignores its signal",
		async play(connect) {
			const release = happening();
			const running = happening();
			const ended = happening<string>();
			const { client } = await connect({
				handlers: {
					unary: async () => {
						running.resolve();
						await release.promise;
						ended.resolve("ended later");
						return {};
					},
				},
			});
			const controller = new AbortController();
			const call = errorOf(client.unary({}, { signal: controller.signal }));
			await running.promise;
			controller.abort();
			const outcome = await call;
			release.resolve();
			return [outcome, await ended.promise];
		},
		outcome: ["Canceled: This operation was aborted", "ended later"],
	},
	{
		does: "drops the error of a handler whose caller has gone",
		async play(connect) {
			const running = happening();
			const thrown = happening<string>();
			const { client } = await connect({
				handlers: {
					unary: async (_, { signal }) => {
						running.resolve();
						await abortOf(signal);
						thrown.resolve("thrown into the void");
						throw new Error("nobody hears this");
					},
				},
			});
			const controller = new AbortController();
			const call = errorOf(client.unary({}, { signal: controller.signal }));
			await running.promise;
			controller.abort();
			return [await call, await thrown.promise];
		},
		outcome: ["Canceled: This operation was aborted", "thrown into the void"],
	},
	{
		does: "leaves an answered call alone when its signal aborts later",
		async play(connect) {
			const { client } = await connect({ handlers: { unary: () => ({ text: "done" }) } });
			const controller = new AbortController();
			const response = await client.unary({}, { signal: controller.signal });
			controller.abort();
			return response.text;
		},
		outcome: "done",
	},
	{
		does: "aborts all calls of one signal",
		async play(connect) {
			let count = 0;
			const all = happening();
			const { client } = await connect({
				handlers: {
					unary: () => {
						count += 1;
						if (count === 3) {
							all.resolve();
						}
						return forever();
					},
				},
			});
			const controller = new AbortController();
			const calls = [1, 2, 3].map(() => errorOf(client.unary({}, { signal: controller.signal })));
			await all.promise;
			controller.abort("all of you");
			return Promise.all(calls);
		},
		outcome: ["Canceled: all of you", "Canceled: all of you", "Canceled: all of you"],
	},
	{
		does: "aborts one call and leaves its neighbour",
		async play(connect) {
			const release = happening();
			const { client } = await connect({
				handlers: {
					unary: async ({ text }) => {
						await release.promise;
						return { text };
					},
				},
			});
			const controller = new AbortController();
			const one = errorOf(client.unary({ text: "one" }, { signal: controller.signal }));
			const other = client.unary({ text: "other" });
			controller.abort();
			const outcome = await one;
			release.resolve();
			return [outcome, (await other).text];
		},
		outcome: ["Canceled: This operation was aborted", "other"],
	},
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
			const { client, running, aborted } = await connectHanging(connect);
			const call = errorOf(client.unary({}, { timeoutMs }));
			const { signal } = await running;
			const before = signal.aborted;
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
			const { client } = await connect({
				handlers: {
					unary: async (_, { signal, timeoutMs: leftMs }) => {
						await abortOf(signal);
						left.resolve((leftMs() ?? Number.NaN) < 5);
						return {};
					},
				},
			});
			await errorOf(client.unary({}, { timeoutMs }));
			return left.promise;
		},
		outcome: true,
	},
	{
		does: "answers in time what has a deadline",
		async play(connect) {
			const { client } = await connect({ handlers: { unary: () => ({ text: "in time" }) } });
			return (await client.unary({}, { timeoutMs: 10_000 })).text;
		},
		outcome: "in time",
	},
	{
		does: "lets the caller's signal go before a later deadline",
		async play(connect) {
			const { client, running } = await connectHanging(connect);
			const controller = new AbortController();
			const options = { signal: controller.signal, timeoutMs: 10_000 };
			const call = errorOf(client.unary({}, options));
			await running;
			controller.abort("before");
			return call;
		},
		outcome: "Canceled: before",
	},
	{
		does: "fails calls whose handlers give up at a shutdown, with its error",
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
		does: "fails streams whose handlers give up at a shutdown, with its error",
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
	{
		does: "ends a stream that its caller aborts between two messages",
		async play(connect) {
			const aborted = happening<unknown>();
			const { client } = await connect({
				handlers: {
					async *serverStream(_, { signal }) {
						void abortOf(signal).then(aborted.resolve);
						yield { text: "first" };
						await forever();
					},
				},
			});
			const controller = new AbortController();
			const texts: string[] = [];
			const reading = (async () => {
				for await (const { text } of client.serverStream({}, { signal: controller.signal })) {
					texts.push(text);
					controller.abort();
				}
			})();
			return [await errorOf(reading), texts, codeOf(await aborted.promise)];
		},
		outcome: ["Canceled: This operation was aborted", ["first"], "Canceled"],
	},
	{
		does: "ends a stream that its caller aborts before the first message",
		async play(connect) {
			const running = happening();
			const aborted = happening<unknown>();
			const { client } = await connect({
				handlers: {
					// biome-ignore lint/correctness/useYield: it waits for what does not come
					async *serverStream(_, { signal }) {
						void abortOf(signal).then(aborted.resolve);
						running.resolve();
						await forever();
					},
				},
			});
			const controller = new AbortController();
			const reading = textsOf(client.serverStream({}, { signal: controller.signal }));
			await running.promise;
			controller.abort();
			return [await reading, codeOf(await aborted.promise)];
		},
		outcome: [["Canceled: This operation was aborted"], "Canceled"],
	},
	{
		does: "runs the finally of a handler that waits on its signal when its caller aborts",
		async play(connect) {
			const cleaned = happening<boolean>();
			const { client } = await connect({
				handlers: {
					async *serverStream(_, { signal }) {
						try {
							yield { text: "first" };
							await throwOnAbort(signal);
						} finally {
							cleaned.resolve(signal.aborted);
						}
					},
				},
			});
			const controller = new AbortController();
			const reading = (async () => {
				for await (const _ of client.serverStream({}, { signal: controller.signal })) {
					controller.abort();
				}
			})();
			return [await errorOf(reading), await cleaned.promise];
		},
		outcome: ["Canceled: This operation was aborted", true],
	},
	{
		does: "runs the finally of a handler that could yield on and on when its caller aborts",
		async play(connect) {
			const cleaned = happening<boolean>();
			const { client } = await connect({
				handlers: {
					async *serverStream(_, { signal }) {
						try {
							for (;;) {
								yield { text: "more".repeat(10_000) };
							}
						} finally {
							cleaned.resolve(signal.aborted);
						}
					},
				},
			});
			const controller = new AbortController();
			const reading = (async () => {
				for await (const _ of client.serverStream({}, { signal: controller.signal })) {
					controller.abort();
				}
			})();
			return [await errorOf(reading), await cleaned.promise];
		},
		outcome: ["Canceled: This operation was aborted", true],
	},
	{
		does: "fails a stream at its deadline, messages before it delivered",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield { text: "first" };
						await forever();
					},
				},
			});
			return textsOf(client.serverStream({}, { timeoutMs }));
		},
		outcome: ["first", "DeadlineExceeded: the operation timed out"],
	},
	{
		does: "fails a stream that was at its deadline before its first message",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					// biome-ignore lint/correctness/useYield: it waits for what does not come
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
			const { client } = await connect({
				handlers: {
					async *serverStream(_, { signal }) {
						void abortOf(signal).then(() => aborted.resolve());
						yield { text: "first" };
						await forever();
					},
				},
			});
			const reader = client.serverStream({}, { timeoutMs })[Symbol.asyncIterator]();
			const first = await reader.next();
			await aborted.promise;
			return [first.done !== true && first.value.text, await errorOf(reader.next())];
		},
		outcome: ["first", "DeadlineExceeded: the operation timed out"],
	},
	{
		does: "leaves a stream open whose reader stops, until the reader's signal aborts",
		async play(connect) {
			const aborted = happening<unknown>();
			let isAborted = false;
			const { client } = await connect({
				handlers: {
					unary: () => ({ text: `${isAborted}` }),
					async *serverStream(_, { signal }) {
						void abortOf(signal).then((reason) => {
							isAborted = true;
							aborted.resolve(reason);
						});
						yield { text: "first" };
						await forever();
					},
				},
			});
			const controller = new AbortController();
			for await (const _ of client.serverStream({}, { signal: controller.signal })) {
				break;
			}
			const { text } = await client.unary({});
			controller.abort();
			return [text, codeOf(await aborted.promise)];
		},
		outcome: ["false", "Canceled"],
	},
	{
		does: "ends a stream for good: after an abort there is nothing more to read",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield { text: "first" };
						await forever();
					},
				},
			});
			const controller = new AbortController();
			const reader = client.serverStream({}, { signal: controller.signal })[Symbol.asyncIterator]();
			await reader.next();
			controller.abort();
			return [await errorOf(reader.next()), await reader.next()];
		},
		outcome: ["Canceled: This operation was aborted", { done: true, value: undefined }],
	},
	{
		does: "cancels a call within a handler when the outer caller aborts",
		async play(connect) {
			const { client: inner, running, aborted } = await connectHanging(connect);
			const { client } = await connect({
				handlers: { unary: (_, { signal }) => inner.unary({}, { signal }) },
			});
			const controller = new AbortController();
			const call = errorOf(client.unary({}, { signal: controller.signal }));
			await running;
			controller.abort();
			return [await call, codeOf(await aborted)];
		},
		outcome: ["Canceled: This operation was aborted", "Canceled"],
	},
	{
		does: "drains a stream that ends before its caller aborts",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						yield { text: "only" };
					},
				},
			});
			const controller = new AbortController();
			const stream = client.serverStream({}, { signal: controller.signal });
			await drained(stream);
			controller.abort();
			return "drained";
		},
		outcome: "drained",
	},
];
