import { Code, ConnectError } from "@connectrpc/connect";
import {
	abortOf,
	type Behavior,
	type Connect,
	codeOf,
	connectHanging,
	errorOf,
	forever,
	happening,
	seen,
} from "./behavior.fixture.ts";

/** Aborts a running unary call with the given reason, and returns the caller's error. */
async function abortedWith(connect: Connect, reason?: unknown): Promise<unknown> {
	const { client, running } = await connectHanging(connect);
	const controller = new AbortController();
	const call = errorOf(client.unary({}, { signal: controller.signal }));
	await running;
	controller.abort(reason);
	return call;
}

/** How callers cancel unary calls. */
export const cancellationBehaviors: readonly Behavior[] = [
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
		does: "fails an aborted call with its caller's reason, if that is a ConnectError",
		play: (connect) => abortedWith(connect, new ConnectError("moved on", Code.FailedPrecondition)),
		outcome: "FailedPrecondition: moved on",
	},
	{
		does: "fails an aborted call with the text of a reason that is not an error",
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
		does: "does not show the handler the caller's reason",
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
		does: "drops the error of a handler whose caller has left",
		async play(connect) {
			const running = happening();
			const thrown = happening<string>();
			const { client } = await connect({
				handlers: {
					unary: async (_, { signal }) => {
						running.resolve();
						await abortOf(signal);
						thrown.resolve("thrown into the void");
						throw new Error("dropped");
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
		does: "does not affect a finished call when its signal aborts later",
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
		does: "aborts one call and not another",
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
];
