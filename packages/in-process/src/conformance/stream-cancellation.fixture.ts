import {
	abortOf,
	type Behavior,
	codeOf,
	drained,
	errorOf,
	forever,
	happening,
	textsOf,
	throwOnAbort,
} from "./behavior.fixture.ts";

/** How callers cancel streams. */
export const streamCancellationBehaviors: readonly Behavior[] = [
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
					// biome-ignore lint/correctness/useYield: it never responds
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
		does: "runs the finally of a handler that yields endlessly when its caller aborts",
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
		does: "leaves a stream open whose reader stops, until the reader's signal aborts",
		clients: "createClient",
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
		does: "ends a stream permanently: nothing can be read after an abort",
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
