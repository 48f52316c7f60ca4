import { create } from "@bufbuild/protobuf";
import { createContextKey, createContextValues } from "@connectrpc/connect";
import { NestedSchema, PongSchema } from "../../testdata/src/gen/probe_pb.ts";
import { type Behavior, happening } from "./behavior.fixture.ts";

const user = createContextKey("nobody");

/** Messages and context of a unary call that succeeds. */
export const unaryBehaviors: readonly Behavior[] = [
	{
		does: "passes a request to its handler and the response back",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (request) =>
						create(PongSchema, { text: `${request.text}!`, number: request.number }),
				},
			});
			const response = await client.unary({ text: "hello", number: 7 });
			return [response.$typeName, response.text, response.number];
		},
		outcome: ["plinth.inprocess.probe.v1.Pong", "hello!", 7],
	},
	{
		does: "creates a message from the fields that a caller passes",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: (request) => ({ text: `${request.$typeName} ${request.number}` }) },
			});
			return (await client.unary({ nested: { tags: ["a"] } })).text;
		},
		outcome: "plinth.inprocess.probe.v1.Ping 0",
	},
	{
		does: "creates a message from the fields that a handler returns",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: async () => ({ nested: { tags: ["a", "b"] } }) },
			});
			const response = await client.unary({});
			return [response.$typeName, response.text, response.nested?.$typeName, response.nested?.tags];
		},
		outcome: ["plinth.inprocess.probe.v1.Pong", "", "plinth.inprocess.probe.v1.Nested", ["a", "b"]],
	},
	{
		does: "accepts a message of another type for the fields that both have",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: (request) => ({ ...request, $typeName: PongSchema.typeName }) },
			});
			const response = await client.unary({ text: "same name", number: 3 });
			return [response.$typeName, response.text, response.number];
		},
		outcome: ["plinth.inprocess.probe.v1.Pong", "same name", 3],
	},
	{
		does: "treats a handler that returns nothing as returning an empty message",
		async play(connect) {
			const nothing = JSON.parse("{}").nothing;
			const { client } = await connect({ handlers: { unary: async () => nothing } });
			const response = await client.unary({ text: "hello" });
			return [response.$typeName, response.text];
		},
		outcome: ["plinth.inprocess.probe.v1.Pong", ""],
	},
	{
		does: "calls the implementation as a method of its object",
		async play(connect) {
			const implementation = {
				greeting: "from this",
				unary() {
					return { text: this.greeting };
				},
			};
			const { client } = await connect({ handlers: implementation });
			return (await client.unary({})).text;
		},
		outcome: "from this",
	},
	{
		does: "shows a handler which method was called, and how",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (_, { service, method, requestMethod, url }) => ({
						text: [service.typeName, method.name, requestMethod, new URL(url).pathname].join(" "),
					}),
				},
			});
			return (await client.unary({})).text;
		},
		outcome:
			"plinth.inprocess.probe.v1.ProbeService Unary POST /plinth.inprocess.probe.v1.ProbeService/Unary",
	},
	{
		does: "keeps the caller's context values on the caller's side",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: (_, context) => ({ text: context.values.get(user) }) },
			});
			const contextValues = createContextValues().set(user, "the caller");
			return (await client.unary({}, { contextValues })).text;
		},
		outcome: "nobody",
	},
	{
		does: "gives handlers the context values of their server",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: (_, context) => ({ text: context.values.get(user) }) },
				contextValues: () => createContextValues().set(user, "from the server"),
			});
			return (await client.unary({})).text;
		},
		outcome: "from the server",
	},
	{
		does: "gives each call its own context values",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (_, context) => {
						const had = context.values.get(user);
						context.values.set(user, "somebody");
						return { text: `${had} ${context.values.get(user)}` };
					},
				},
			});
			return [(await client.unary({})).text, (await client.unary({})).text];
		},
		outcome: ["nobody somebody", "nobody somebody"],
	},
	{
		does: "tells a handler how much time is left until its deadline, in whole milliseconds that it can pass on",
		async play(connect) {
			const { client } = await connect({
				handlers: {
					unary: (_, { timeoutMs }) => {
						const leftMs = timeoutMs() ?? Number.NaN;
						const isWhole = Number.isInteger(leftMs);
						return { text: leftMs > 0 && leftMs <= 300_000 && isWhole ? "some" : `${leftMs}` };
					},
				},
			});
			return (await client.unary({}, { timeoutMs: 300_000 })).text;
		},
		outcome: "some",
	},
	{
		does: "tells a handler that it has no deadline",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: (_, context) => ({ text: `${context.timeoutMs()}` }) },
			});
			return (await client.unary({})).text;
		},
		outcome: "undefined",
	},
	{
		does: "uses the transport's timeout for calls that set none, but not for a timeout of 0",
		async play(connect) {
			const { client } = await connect({
				handlers: { unary: (_, { timeoutMs }) => ({ text: typeof timeoutMs() }) },
				defaultTimeoutMs: 5_000,
			});
			return [(await client.unary({})).text, (await client.unary({}, { timeoutMs: 0 })).text];
		},
		outcome: ["number", "undefined"],
	},
	{
		does: "aborts a handler's signal when the call is over, and not before",
		async play(connect) {
			const over = happening<boolean>();
			const { client } = await connect({
				handlers: {
					unary: (_, { signal }) => {
						signal.addEventListener("abort", () => over.resolve(signal.aborted));
						return { text: `${signal.aborted}` };
					},
				},
			});
			return [(await client.unary({})).text, await over.promise];
		},
		outcome: ["false", true],
	},
	{
		does: "gives a handler that reads it late an aborted signal",
		async play(connect) {
			const requested = happening<boolean>();
			const { client } = await connect({
				handlers: {
					unary: (_, context) => {
						setImmediate(() => requested.resolve(context.signal.aborted));
						return {};
					},
				},
			});
			await client.unary({});
			return requested.promise;
		},
		outcome: true,
	},
	{
		does: "passes bytes and nested messages unchanged",
		async play(connect) {
			const { client } = await connect({ handlers: { unary: ({ nested }) => ({ nested }) } });
			const nested = create(NestedSchema, { tags: ["x"], data: new Uint8Array([0, 255]) });
			const response = await client.unary({ nested });
			return [response.nested?.tags, [...(response.nested?.data ?? [])]];
		},
		outcome: [["x"], [0, 255]],
	},
];
