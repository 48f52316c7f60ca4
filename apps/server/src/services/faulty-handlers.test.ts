import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import {
	type CallObserver,
	createRpcRouter,
	type RequestHead,
	type RpcRouterOptions,
} from "@plinth/rpc-server";
import { systemClock } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { createCallMetrics } from "../operations/call-metrics.ts";
import { createMetrics } from "../operations/metrics.ts";
import { enveloped } from "../raw-calls.fixture.ts";
import { startListener } from "../started-listener.fixture.ts";

const read = "/plinth.resource.v1.ResourceService/Read";
const watch = "/plinth.resource.v1.ResourceService/WatchList";

/** Valid in `Headers`, but not in HTTP. */
const unsendable = "\u0001";

function routerOf(
	implementation: Parameters<typeof serve>[1],
	options: Omit<RpcRouterOptions, "clock"> = {},
) {
	return serve(createRpcRouter({ clock: systemClock, ...options }), implementation);
}

function serve<R extends ConnectRouter>(
	router: R,
	implementation: Parameters<typeof router.service<typeof ResourceService>>[1],
	options?: Parameters<typeof router.service>[2],
): R {
	router.service(ResourceService, implementation, options);
	return router;
}

function call(address: string, path: string, contentType: string): Promise<Response> {
	return fetch(`${address}${path}`, {
		method: "POST",
		headers: { "content-type": contentType },
		body: enveloped(contentType.endsWith("json") ? "{}" : ""),
	});
}

/** Records how calls end. */
function endings(): { readonly codes: (Code | "ok")[]; readonly observer: CallObserver } {
	const codes: (Code | "ok")[] = [];
	const ended = (failure: unknown) => {
		codes.push(failure === undefined ? "ok" : ConnectError.from(failure).code);
	};
	return { codes, observer: { started: () => ({ ended }) } };
}

describe("a handler", () => {
	it("whose headers can't be sent ends its stream, and the client sees that", async () => {
		const faults: unknown[] = [];
		const left = Promise.withResolvers<void>();
		const router = routerOf(
			{
				async *watchList(_request, { responseHeader, signal }) {
					signal.addEventListener("abort", () => left.resolve());
					responseHeader.set("x-name", unsendable);
					yield { version: "1" };
					await new Promise(() => {});
				},
			},
			{ onFault: (_call, failure) => faults.push(failure) },
		);
		const { address, exchanges } = await startListener(router);
		await expect(call(address, watch, "application/connect+json")).rejects.toThrow("fetch failed");
		await left.promise;
		expect([faults.length > 0, exchanges.open]).toEqual([true, 0]);
	});

	it.each([10, 200_000])(
		"whose trailers can't be sent fails its call only, after %d bytes",
		async (size) => {
			const router = routerOf({
				read: (_request, { responseTrailer }) => {
					responseTrailer.set("x-name", unsendable);
					return { resource: { id: { name: "x".repeat(size) } } };
				},
			});
			const { address, exchanges } = await startListener(router);
			const received = call(address, read, "application/grpc").then((response) => response.text());
			await expect(received).rejects.toThrow(/fetch failed|terminated/);
			expect(exchanges.open).toBe(0);
		},
	);

	it("may throw a code that does not exist, which metrics count as unknown", async () => {
		const code: Code = Number("99");
		const metrics = createMetrics();
		const { observer } = createCallMetrics(metrics, systemClock);
		const router = routerOf(
			{
				read: () => {
					throw new ConnectError("no such code", code);
				},
			},
			{ observers: [observer] },
		);
		const { address } = await startListener(router);
		await (await call(address, read, "application/grpc-web")).text();
		expect(await metrics.prometheus()).toContain('code="unknown"');
		await metrics.close();
	});

	it("may throw an error that can't be corrected", async () => {
		const { codes, observer } = endings();
		const router = routerOf(
			{
				read: () => {
					throw Object.freeze(new ConnectError("frozen", Code.NotFound));
				},
			},
			{
				observers: [observer],
				correctError: (error) => {
					error.message = "corrected";
				},
			},
		);
		const { address, exchanges } = await startListener(router);
		await expect(call(address, read, "application/grpc")).rejects.toThrow("fetch failed");
		expect([codes, exchanges.open]).toEqual([[Code.NotFound], 0]);
	});
});

describe("a stream whose client has left", () => {
	it("stops its iterator once, and counts as canceled", async () => {
		const { codes, observer } = endings();
		const stopped: string[] = [];
		const returned = Promise.withResolvers<IteratorResult<{ version: string }, undefined>>();
		let isFirst = true;
		const router = routerOf(
			{
				watchList: () => ({
					[Symbol.asyncIterator]: () => ({
						async next() {
							if (isFirst) {
								isFirst = false;
								return { done: false, value: { version: "1" } };
							}
							return returned.promise;
						},
						async return() {
							stopped.push("return");
							returned.resolve({ done: true, value: undefined });
							return returned.promise;
						},
					}),
				}),
			},
			{ observers: [observer] },
		);
		const { address, exchanges } = await startListener(router);
		const response = await call(address, watch, "application/connect+json");
		await response.body?.cancel();
		while (exchanges.open > 0) {
			await new Promise((resolve) => setImmediate(resolve));
		}
		expect([stopped, codes]).toEqual([["return"], [Code.Canceled]]);
	});
});

describe("a registration", () => {
	const reads = { read: () => ({}) };

	it("has the gate of its router, even if its own is undefined", async () => {
		const options = {};
		Reflect.set(options, "requestGate", undefined);
		const requestGate = () => {
			throw new ConnectError("refused", Code.PermissionDenied);
		};
		const router = serve(createRpcRouter({ clock: systemClock, requestGate }), reads, options);
		const { address } = await startListener(router);
		const response = await fetch(`${address}${read}`, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: "{}",
		});
		expect(response.status).toBe(403);
	});
});

describe("a call that is left to Connect", () => {
	function isLeft(target: string, headers: Readonly<Record<string, string>>, method: string) {
		const head: RequestHead = {
			...{ httpVersion: "2.0", method, target, url: `http://localhost${target}` },
			header: (name) => headers[name],
			headers: () => Object.entries(headers),
		};
		const gzip = {
			name: "gzip",
			compress: async (bytes: Uint8Array) => new Uint8Array(bytes),
			decompress: async (bytes: Uint8Array) => new Uint8Array(bytes),
		};
		const router = routerOf({}, { acceptCompression: [gzip] });
		return router.plan(target.split(/[?#]/, 1)[0] ?? "", head) === undefined;
	}

	it.each([
		["application/grpc", "grpc-accept-encoding"],
		["application/grpc-web+proto", "grpc-accept-encoding"],
		["application/json", "accept-encoding"],
	])("may have a compressed response: %s", (contentType, header) => {
		const headers = { "content-type": contentType };
		expect(isLeft(read, headers, "POST")).toBe(false);
		expect(isLeft(read, { ...headers, [header]: "gzip" }, "POST")).toBe(true);
	});

	it("may have a fragment in its target, before which its query ends", () => {
		const target = `${read}?encoding=json&message=%7B%7D`;
		expect(isLeft(target, {}, "GET")).toBe(false);
		expect(isLeft(`${target}#x`, {}, "GET")).toBe(true);
	});
});
