import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { NestedSchema, PingSchema } from "../../testdata/src/gen/probe_pb.ts";
import {
	type Behavior,
	type Connect,
	caught,
	codeOf,
	drained,
	errorOf,
	seen,
	textsOf,
} from "./behavior.fixture.ts";

/** Plays a unary call whose handler throws. */
function thrownBy(handler: (context: HandlerContext) => never) {
	return async (connect: Connect) => {
		const { client } = await connect({ handlers: { unary: (_, context) => handler(context) } });
		return client.unary({});
	};
}

/** How errors reach the caller of a handler. */
export const errorBehaviors: readonly Behavior[] = [
	{
		does: "delivers the code and the message of a ConnectError",
		async play(connect) {
			const call = thrownBy(() => {
				throw new ConnectError("no such thing", Code.NotFound);
			});
			return errorOf(call(connect));
		},
		outcome: "NotFound: no such thing",
	},
	{
		does: "delivers every code",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (request) => {
						throw new ConnectError("", request.number);
					},
				},
			});
			const codes: unknown[] = [];
			for (let number = 1; number <= 16; number++) {
				codes.push((await caught(client.unary({ number }))).code);
			}
			return codes;
		},
		outcome: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
	},
	{
		does: "delivers an error that a promise rejected with",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: () => Promise.reject(new ConnectError("overloaded", Code.Aborted)) },
			});
			return errorOf(client.unary({}));
		},
		outcome: "Aborted: overloaded",
	},
	{
		does: "delivers a message with any character, or none",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (request) => {
						throw new ConnectError(request.text, Code.Aborted);
					},
				},
			});
			return [
				await errorOf(client.unary({ text: "čtyři\n100 % 🌱" })),
				await errorOf(client.unary({ text: "" })),
			];
		},
		outcome: ["Aborted: čtyři\n100 % 🌱", "Aborted: "],
	},
	{
		does: "hides the message of an error that is not a ConnectError",
		async play(connect) {
			const call = thrownBy(() => {
				throw new TypeError("the password is 1234");
			});
			const error = await caught(call(connect));
			return [seen(error), error.cause, error.details];
		},
		outcome: ["Internal: internal error", undefined, []],
	},
	{
		does: "hides a thrown value that is not an error",
		async play(connect) {
			const call = thrownBy(() => {
				throw "a string";
			});
			return errorOf(call(connect));
		},
		outcome: "Internal: internal error",
	},
	{
		does: "fails a call whose handler throws undefined",
		async play(connect) {
			const call = thrownBy(() => {
				throw undefined;
			});
			return codeOf(await caught(call(connect)));
		},
		outcome: "Internal",
		deviation: {
			on: "gRPC",
			outcome: "Unimplemented",
			why: "the library detects a failure by the presence of an error, so the call appears to have succeeded without a message",
		},
	},
	{
		does: "treats an AbortError of the handler as an internal error",
		async play(connect) {
			const call = thrownBy(() => {
				throw new DOMException("something inside was aborted", "AbortError");
			});
			return errorOf(call(connect));
		},
		outcome: "Internal: internal error",
	},
	{
		does: "does not pass on the cause of an error",
		async play(connect) {
			const call = thrownBy(() => {
				const cause = new Error("the disk");
				throw new ConnectError("unavailable", Code.Unavailable, undefined, undefined, cause);
			});
			return (await caught(call(connect))).cause;
		},
		outcome: undefined,
	},
	{
		does: "delivers the metadata of an error",
		async play(connect) {
			const call = thrownBy(() => {
				throw new ConnectError("wait", Code.ResourceExhausted, { "X-Retry": "5" });
			});
			return (await caught(call(connect))).metadata.get("x-retry");
		},
		outcome: "5",
	},
	{
		does: "delivers repeated metadata of an error, joined",
		async play(connect) {
			const call = thrownBy(() => {
				const error = new ConnectError("wait", Code.Aborted);
				error.metadata.append("x-hint", "one");
				error.metadata.append("x-hint", "two");
				throw error;
			});
			return (await caught(call(connect))).metadata.get("x-hint");
		},
		outcome: "one, two",
	},
	{
		does: "delivers the headers and trailers that were set before an error in its metadata",
		async play(connect) {
			const call = thrownBy((context) => {
				context.responseHeader.set("x-head", "1");
				context.responseTrailer.set("x-trail", "2");
				throw new ConnectError("after all", Code.Aborted);
			});
			const { metadata } = await caught(call(connect));
			return [metadata.get("x-head"), metadata.get("x-trail")];
		},
		outcome: ["1", "2"],
	},
	{
		does: "delivers headers and trailers with an internal error too",
		async play(connect) {
			const call = thrownBy((context) => {
				context.responseHeader.set("x-head", "1");
				context.responseTrailer.set("x-trail", "2");
				throw new Error("a bug");
			});
			const { metadata } = await caught(call(connect));
			return [metadata.get("x-head"), metadata.get("x-trail")];
		},
		outcome: ["1", "2"],
	},
	{
		does: "delivers the details of an error",
		async play(connect) {
			const call = thrownBy(() => {
				throw new ConnectError("see details", Code.InvalidArgument, undefined, [
					{ desc: NestedSchema, value: { tags: ["a"] } },
					{ desc: PingSchema, value: { text: "p" } },
					{ desc: NestedSchema, value: { tags: ["b"] } },
				]);
			});
			const error = await caught(call(connect));
			return [
				error.findDetails(NestedSchema).map((detail) => detail.tags),
				error.findDetails(PingSchema).map((detail) => detail.text),
			];
		},
		outcome: [[["a"], ["b"]], ["p"]],
	},
	{
		does: "creates a new error for each call, even if a handler throws the same one",
		async play(connect) {
			const same = new ConnectError("always", Code.Aborted, { "x-hint": "once" });
			const { client } = await connect({
				handlers: {
					unary: (_, context) => {
						context.responseTrailer.set("x-trail", "t");
						throw same;
					},
				},
			});
			const first = await caught(client.unary({}));
			first.metadata.set("x-mine", "m");
			const second = await caught(client.unary({}));
			return [
				second === same,
				second.metadata.get("x-hint"),
				second.metadata.get("x-mine"),
				same.metadata.get("x-trail"),
			];
		},
		outcome: [false, "once", null, null],
	},
	{
		does: "forwards an error of another call without that call's metadata",
		async play(connect) {
			const inner = await connect({
				handlers: {
					unary: () => {
						throw new ConnectError("inner", Code.Aborted, { "x-secret": "s" }, [
							{ desc: NestedSchema, value: { tags: ["d"] } },
						]);
					},
				},
			});
			const outer = await connect({ handlers: { unary: () => inner.client.unary({}) } });
			const error = await caught(outer.client.unary({}));
			return [seen(error), error.metadata.get("x-secret"), error.findDetails(NestedSchema)];
		},
		outcome: ["Aborted: inner", null, [create(NestedSchema, { tags: ["d"] })]],
	},
	{
		does: "calls neither onHeader nor onTrailer for a failed unary call",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: () => {
						throw new ConnectError("no", Code.Aborted);
					},
				},
			});
			const saw: string[] = [];
			const options = { onHeader: () => saw.push("header"), onTrailer: () => saw.push("trailer") };
			return [await errorOf(client.unary({}, options)), saw];
		},
		outcome: ["Aborted: no", []],
	},
	{
		does: "reports that a method is not implemented",
		async play(connect) {
			const { client } = await connect({ handlers: {} });
			return [await errorOf(client.unary({})), await textsOf(client.serverStream({}))];
		},
		outcome: [
			"Unimplemented: plinth.inprocess.probe.v1.ProbeService.Unary is not implemented",
			["Unimplemented: plinth.inprocess.probe.v1.ProbeService.ServerStream is not implemented"],
		],
	},
	{
		does: "reports that a service is not registered",
		async play(connect) {
			const { absent } = await connect({ handlers: {} });
			return [
				codeOf(await caught(absent.unary({}))),
				codeOf(await caught(drained(absent.serverStream({})))),
			];
		},
		outcome: ["Unimplemented", "Unimplemented"],
	},
	{
		does: "aborts a handler's signal with what the handler threw",
		async play(connect) {
			const { promise, resolve } = Promise.withResolvers<unknown>();
			const { client } = await connect({
				handlers: {
					unary: (_, { signal }) => {
						signal.addEventListener("abort", () => resolve(seen(signal.reason)));
						throw new ConnectError("mine", Code.Aborted);
					},
				},
			});
			await errorOf(client.unary({}));
			return promise;
		},
		outcome: "Aborted: mine",
	},
	{
		does: "continues to serve after a handler threw",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: ({ text }) => {
						if (text === "bad") {
							throw new Error("a bug");
						}
						return { text };
					},
				},
			});
			const calls = ["good", "bad", "good"].map((text) => client.unary({ text }));
			const results = await Promise.allSettled(calls);
			return results.map(({ status }) => status);
		},
		outcome: ["fulfilled", "rejected", "fulfilled"],
	},
	{
		does: "refuses a call at the gate, before its handler",
		async play(connect) {
			let ran = false;
			const { client } = await connect({
				handlers: {
					unary: () => {
						ran = true;
						return {};
					},
				},
				requestGate: (context) => {
					if (context.requestHeader.get("authorization") === null) {
						throw new ConnectError("who are you?", Code.Unauthenticated);
					}
				},
			});
			const refused = await errorOf(client.unary({}));
			const ranThen = ran;
			await client.unary({}, { headers: { authorization: "me" } });
			return [refused, ranThen, ran];
		},
		outcome: ["Unauthenticated: who are you?", false, true],
	},
	{
		does: "refuses a stream at the gate, before its handler",
		async play(connect) {
			let ran = false;
			const { client } = await connect({
				handlers: {
					async *serverStream() {
						ran = true;
						yield {};
					},
				},
				requestGate: () => {
					throw new ConnectError("who are you?", Code.Unauthenticated);
				},
			});
			return [await textsOf(client.serverStream({})), ran];
		},
		outcome: [["Unauthenticated: who are you?"], false],
	},
	{
		does: "refuses a timeout longer than the server allows",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: () => ({ text: "fine" }) },
				maxTimeoutMs: 300_000,
			});
			return [
				codeOf(await caught(client.unary({}, { timeoutMs: 600_000 }))),
				(await client.unary({}, { timeoutMs: 300_000 })).text,
			];
		},
		outcome: ["InvalidArgument", "fine"],
	},
];
