import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { AnySchema, EmptySchema } from "@bufbuild/protobuf/wkt";
import {
	type CallOptions,
	type Client,
	Code,
	ConnectError,
	createClient,
	createRouterTransport,
} from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { createTortureServiceCloningClient } from "../testdata/src/gen/torture/v1/torture_clone.ts";
import {
	type Leaf,
	LeafSchema,
	ListsSchema,
	type Maps,
	MapsSchema,
	OneofsSchema,
	ScalarsSchema,
	TortureService,
	TreeSchema,
} from "../testdata/src/gen/torture/v1/torture_pb.ts";
import { sharedObject } from "./testing/object-graph.ts";

type TortureClient = Client<typeof TortureService>;
type LeafInit = MessageInitShape<typeof LeafSchema>;

/** A client that records requests and returns prepared responses, all by reference. */
function byReference() {
	const requests: unknown[] = [];
	const options: (CallOptions | undefined)[] = [];
	const leaf = create(LeafSchema, { text: "stored", blob: new Uint8Array([1]) });
	const oneofs = create(OneofsSchema, { mixed: { case: "leaf", value: leaf } });
	const maps = create(MapsSchema, { byString: { leaf } });
	const lists = create(ListsSchema, { fLeaf: [leaf] });
	const any = create(AnySchema, { value: new Uint8Array([1]) });
	let closed = 0;

	async function drain(stream: AsyncIterable<unknown>) {
		for await (const request of stream) requests.push(request);
	}
	function take(request: unknown, callOptions: CallOptions | undefined) {
		requests.push(request);
		options.push(callOptions);
	}
	async function* stored(): AsyncGenerator<Maps> {
		try {
			for (;;) yield maps;
		} finally {
			closed++;
		}
	}
	const client: TortureClient = {
		async unary(request, callOptions) {
			take(request, callOptions);
			return oneofs;
		},
		serverStream(request, callOptions) {
			take(request, callOptions);
			return stored();
		},
		async clientStream(stream, callOptions) {
			options.push(callOptions);
			await drain(stream);
			return lists;
		},
		async *bidi(stream, callOptions) {
			options.push(callOptions);
			for await (const request of stream) {
				requests.push(request);
				yield leaf;
			}
		},
		async foreign(request, callOptions) {
			take(request, callOptions);
			return any;
		},
		async constructor$(request, callOptions) {
			take(request, callOptions);
			return leaf;
		},
	};
	return { client, requests, options, leaf, oneofs, maps, lists, any, closed: () => closed };
}

async function* streamOf<T>(...messages: T[]): AsyncGenerator<T> {
	yield* messages;
}

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
	const messages: T[] = [];
	for await (const message of stream) messages.push(message);
	return messages;
}

const newLeaf = () => create(LeafSchema, { text: "sent", blob: new Uint8Array([2]) });

describe("a cloning client", () => {
	it("clones request and response of a unary method", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient(stored.client);
		const request = create(ScalarsSchema, { fBytes: new Uint8Array([3]) });
		const response = await client.unary(request);
		expect(response).toEqual(stored.oneofs);
		expect(sharedObject(stored.oneofs, response)).toBeUndefined();
		expect(stored.requests).toEqual([request]);
		expect(sharedObject(request, stored.requests)).toBeUndefined();
	});

	it("clones request and responses of a server streaming method", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient(stored.client);
		const request = create(TreeSchema, { children: [{ name: "a" }] });
		const responses: Maps[] = [];
		for await (const response of client.serverStream(request)) {
			if (responses.push(response) === 3) break;
		}
		expect(responses).toEqual([stored.maps, stored.maps, stored.maps]);
		expect(sharedObject(stored.maps, responses)).toBeUndefined();
		expect(sharedObject(responses[0], responses[1])).toBeUndefined();
		expect(stored.requests).toEqual([request]);
		expect(sharedObject(request, stored.requests)).toBeUndefined();
	});

	it("clones requests and response of a client streaming method", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient(stored.client);
		const sent = [newLeaf(), newLeaf()];
		const response = await client.clientStream(streamOf(...sent));
		expect(response).toEqual(stored.lists);
		expect(sharedObject(stored.lists, response)).toBeUndefined();
		expect(stored.requests).toEqual(sent);
		expect(sharedObject(sent, stored.requests)).toBeUndefined();
	});

	it("clones requests and responses of a bidirectional method", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient(stored.client);
		const sent = [newLeaf(), newLeaf()];
		const responses = await collect(client.bidi(streamOf(...sent)));
		expect(responses).toEqual([stored.leaf, stored.leaf]);
		expect(sharedObject(stored.leaf, responses)).toBeUndefined();
		expect(stored.requests).toEqual(sent);
		expect(sharedObject(sent, stored.requests)).toBeUndefined();
	});

	it("clones messages of the runtime library", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient(stored.client);
		const request = create(EmptySchema);
		const response = await client.foreign(request);
		expect(sharedObject(stored.any, response)).toBeUndefined();
		expect(sharedObject(request, stored.requests)).toBeUndefined();
	});

	it("accepts init objects, and passes on messages that share nothing with them", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient(stored.client);
		const nested = newLeaf();
		const init = { branch: { twig: { leaf: new Uint8Array([4]) } }, named: { a: { name: "a" } } };
		await client.unary({ fBytes: nested.blob });
		await collectFirst(client.serverStream(init));
		await client.clientStream(streamOf<LeafInit>({ text: "a" }, nested));
		expect(stored.requests).toEqual([
			create(ScalarsSchema, { fBytes: nested.blob }),
			create(TreeSchema, init),
			create(LeafSchema, { text: "a" }),
			nested,
		]);
		expect(sharedObject([nested, init], stored.requests)).toBeUndefined();
	});

	it("clones a request before the caller can change it", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient(stored.client);
		const request = newLeaf();
		const call = client.constructor$(request);
		request.text = "changed";
		await call;
		expect(stored.requests).toEqual([newLeaf()]);
	});

	it("passes the options on", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient(stored.client);
		const options: CallOptions = { timeoutMs: 5 };
		await client.unary({}, options);
		await collectFirst(client.serverStream({}, options));
		await client.clientStream(streamOf(), options);
		await collect(client.bidi(streamOf(newLeaf()), options));
		expect(stored.options).toHaveLength(4);
		expect(stored.options.every((passed) => passed === options)).toBe(true);
	});

	it("is recognized, and not wrapped again", () => {
		const cloning = createTortureServiceCloningClient(byReference().client);
		expect(createTortureServiceCloningClient(cloning)).toBe(cloning);
		const elsewhere = {
			...byReference().client,
			[Symbol.for("protoc-gen-clone.cloning-client")]: true,
		};
		expect(createTortureServiceCloningClient(elsewhere)).toBe(elsewhere);
	});
});

describe("a stream of a cloning client", () => {
	it("closes the underlying stream when the reader stops", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient(stored.client);
		await collectFirst(client.serverStream({}));
		expect(stored.closed()).toBe(1);
	});

	it("closes the caller's requests when the callee stops reading them", async () => {
		const stored = byReference();
		let closed = false;
		async function* requests(): AsyncGenerator<Leaf> {
			try {
				for (;;) yield newLeaf();
			} finally {
				closed = true;
			}
		}
		const client = createTortureServiceCloningClient({
			...stored.client,
			async clientStream(stream) {
				await collectFirst(stream);
				return stored.lists;
			},
		});
		await client.clientStream(requests());
		expect(closed).toBe(true);
	});

	it("passes errors thrown into it to the underlying stream", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient(stored.client);
		const responses = client.serverStream({})[Symbol.asyncIterator]();
		await responses.next();
		await expect(responses.throw?.(new Error("enough"))).rejects.toThrow("enough");
		expect(stored.closed()).toBe(1);
		expect(await responses.next()).toEqual({ done: true, value: undefined });
	});

	it("closes the underlying stream when a message cannot be cloned", async () => {
		const stored = byReference();
		Reflect.set(stored.maps, "byString", undefined);
		const client = createTortureServiceCloningClient(stored.client);
		await expect(collect(client.serverStream({}))).rejects.toThrow(TypeError);
		expect(stored.closed()).toBe(1);
	});

	it("ends like the underlying stream, with its error", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient({
			...stored.client,
			async *serverStream() {
				yield stored.maps;
				throw new ConnectError("gone", Code.DataLoss);
			},
		});
		const responses = client.serverStream({})[Symbol.asyncIterator]();
		expect(await responses.next()).toMatchObject({ done: false });
		await expect(responses.next()).rejects.toThrow(new ConnectError("gone", Code.DataLoss));
	});

	it("cannot be closed if the underlying stream cannot", async () => {
		const stored = byReference();
		const client = createTortureServiceCloningClient({
			...stored.client,
			serverStream: () => ({
				[Symbol.asyncIterator]: () => ({
					next: () => Promise.resolve({ done: false, value: stored.maps }),
				}),
			}),
		});
		const responses = client.serverStream({})[Symbol.asyncIterator]();
		expect(responses.return).toBeUndefined();
		expect(responses.throw).toBeUndefined();
	});
});

describe("a cloning client over a transport", () => {
	const transport = createRouterTransport(({ service }) => {
		service(TortureService, {
			unary(request, context) {
				context.responseHeader.set("response", String(context.requestHeader.get("ask")));
				context.responseTrailer.set("end", "true");
				return { mixed: { case: "number", value: request.fInt64 } };
			},
			async *serverStream(request) {
				for (const { name } of request.children) {
					yield { stringByString: { name } };
				}
			},
			async clientStream(requests) {
				return { fLeaf: await collect(requests) };
			},
			async *bidi(requests) {
				for await (const { text } of requests) {
					if (text === "") throw new ConnectError("no text", Code.InvalidArgument);
					yield { text: text.toUpperCase() };
				}
			},
			foreign: () => ({ typeUrl: "a" }),
			constructor$: (request) => request,
		});
	});
	const client = createTortureServiceCloningClient(createClient(TortureService, transport));

	it("calls all four kinds of methods", async () => {
		const unary = await client.unary({ fInt64: 7n });
		expect(unary.mixed).toEqual({ case: "number", value: 7n });
		const maps = await collect(client.serverStream({ children: [{ name: "a" }, { name: "b" }] }));
		expect(maps.map((map) => map.stringByString)).toEqual([{ name: "a" }, { name: "b" }]);
		const lists = await client.clientStream(streamOf<LeafInit>({ text: "a" }, newLeaf()));
		expect(lists.fLeaf.map(({ text }) => text)).toEqual(["a", "sent"]);
		const leaves = await collect(client.bidi(streamOf({ text: "a" }, { text: "b" })));
		expect(leaves.map(({ text }) => text)).toEqual(["A", "B"]);
	});

	it("passes headers and trailers through", async () => {
		const seen: (string | null)[] = [];
		await client.unary(
			{},
			{
				headers: { ask: "why" },
				onHeader: (headers) => seen.push(headers.get("response")),
				onTrailer: (trailers) => seen.push(trailers.get("end")),
			},
		);
		expect(seen).toEqual(["why", "true"]);
	});

	it("passes errors through", async () => {
		await expect(collect(client.bidi(streamOf({ text: "" })))).rejects.toMatchObject({
			code: Code.InvalidArgument,
			rawMessage: "no text",
		});
	});
});

async function collectFirst<T>(stream: AsyncIterable<T>): Promise<T | undefined> {
	for await (const message of stream) return message;
	return undefined;
}
