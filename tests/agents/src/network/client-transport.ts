import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import type {
	UniversalClientFn,
	UniversalClientRequest,
	UniversalClientResponse,
} from "@connectrpc/connect/protocol";
import { createTransport as createConnectTransport } from "@connectrpc/connect/protocol-connect";
import { createTransport as createGrpcTransport } from "@connectrpc/connect/protocol-grpc";
import type { Fields } from "@plinth/forwarding";
import { Good } from "@plinth/peering/testing";
import { TypeRegistry } from "@plinth/resource";
import { unlessAborted } from "@plinth/runtime";
import type { Caller, Exchange } from "./exchange.ts";
import type { Link, Network } from "./network.ts";

/** How a client speaks. */
export type Protocol = "grpc" | "connect" | "json";

/** Options of `clientTransport`. */
export interface ClientOptions {
	readonly network: Network;
	/** The process that the next connection leads to. @throws ConnectError if there is none. */
	readonly to: () => string;
	readonly protocol: Protocol;
}

/** The message of the error of a client that has lost its connection during a call. */
export const clientLost = "the client has lost its connection";

/** The messages in resources that are sent as JSON. */
const registry = new TypeRegistry([Good]).messages();

/** A transport over the simulated network, with one connection at a time. */
export function clientTransport({ network, to, protocol }: ClientOptions): Transport {
	let link: Link | undefined;
	let connecting: Promise<Link> | undefined;
	const connect = async () => {
		if (link?.isReady) {
			return link;
		}
		connecting ??= network.connect(to()).finally(() => {
			connecting = undefined;
		});
		link = await connecting;
		return link;
	};
	const options = {
		baseUrl: "http://simulated",
		httpClient: httpClient(connect),
		useBinaryFormat: protocol !== "json",
		interceptors: [],
		acceptCompression: [],
		sendCompression: null,
		compressMinBytes: 0,
		readMaxBytes: 2 ** 30,
		writeMaxBytes: 2 ** 30,
		jsonOptions: { registry },
	};
	return protocol === "grpc" ? createGrpcTransport(options) : createConnectTransport(options);
}

function httpClient(connect: () => Promise<Link>): UniversalClientFn {
	return async (request) => {
		const { url, method, header, signal } = request;
		const link = await connect();
		signal?.throwIfAborted();
		const headers: Record<string, string> = {};
		header.forEach((value, name) => {
			headers[name] = value;
		});
		const { pathname, search } = new URL(url);
		const exchange = link.open({ method, target: `${pathname}${search}`, headers });
		const response = new ReceivedResponse(exchange);
		const onAbort = () => response.cancel(signal?.reason);
		signal?.addEventListener("abort", onAbort, { once: true });
		void sendBody(exchange, request);
		return await response.whole(() => signal?.removeEventListener("abort", onAbort));
	};
}

async function sendBody(exchange: Exchange, { body }: UniversalClientRequest): Promise<void> {
	try {
		for await (const chunk of body ?? []) {
			await exchange.send(chunk);
		}
		exchange.finish();
	} catch {
		exchange.cancel();
	}
}

/** A response as its client reads it. */
class ReceivedResponse implements Caller {
	readonly #exchange: Exchange;
	readonly #head = Promise.withResolvers<{ readonly status: number; readonly headers: Fields }>();
	readonly #trailer = new Headers();
	readonly #chunks: Uint8Array[] = [];
	#end: { readonly failure?: unknown } | undefined;
	#changed = Promise.withResolvers<void>();

	constructor(exchange: Exchange) {
		this.#exchange = exchange;
		exchange.caller = this;
		this.#head.promise.catch(() => {});
	}

	/** The response, once its head has come. @param onEnded - called when its body has ended, or will not be read. */
	async whole(onEnded: () => void): Promise<UniversalClientResponse> {
		try {
			const { status, headers } = await this.#head.promise;
			return {
				...{ status, header: new Headers(headers), trailer: this.#trailer },
				body: this.#body(onEnded),
			};
		} catch (failure) {
			onEnded();
			throw failure;
		}
	}

	cancel(reason: unknown): void {
		if (this.#end === undefined) {
			this.#exchange.cancel();
			this.#fail(reason);
		}
	}

	responded(status: number, headers: Fields): void {
		this.#head.resolve({ status, headers });
	}

	received(bytes: Uint8Array): void {
		this.#chunks.push(bytes);
		this.#wake();
	}

	ended(trailers: Fields): void {
		for (const [name, value] of Object.entries(trailers)) {
			this.#trailer.set(name, value);
		}
		this.#end = {};
		this.#wake();
	}

	wasReset(code: number): void {
		this.#fail(new ConnectError(`the call was reset with code ${code}`, Code.Internal));
	}

	lost(): void {
		this.#fail(new ConnectError(clientLost, Code.Unavailable));
	}

	async *#body(onEnded: () => void): AsyncGenerator<Uint8Array, void, undefined> {
		try {
			for (;;) {
				const chunk = this.#chunks.shift();
				if (chunk !== undefined) {
					yield chunk;
				} else if (this.#end === undefined) {
					await this.#changed.promise;
				} else if ("failure" in this.#end) {
					throw this.#end.failure;
				} else {
					return;
				}
			}
		} finally {
			onEnded();
			this.cancel(new ConnectError("the client reads no more", Code.Canceled));
		}
	}

	#fail(failure: unknown): void {
		this.#end ??= { failure };
		this.#head.reject(failure);
		this.#wake();
	}

	#wake(): void {
		this.#changed.resolve();
		this.#changed = Promise.withResolvers();
	}
}

/** The transport with deadlines of the simulation's clock, in place of those of the system. */
export function withSimulatedDeadlines(transport: Transport, network: Network): Transport {
	const { clock } = network.faults.runtime;
	return {
		async unary(method, signal, timeoutMs, ...call) {
			if (timeoutMs === undefined) {
				return transport.unary(method, signal, timeoutMs, ...call);
			}
			const end = new AbortController();
			const linked = AbortSignal.any([end.signal, ...(signal ? [signal] : [])]);
			const timer = clock.setTimer(timeoutMs, () =>
				end.abort(new ConnectError("the operation timed out", Code.DeadlineExceeded)),
			);
			try {
				return await unlessAborted(transport.unary(method, linked, undefined, ...call), linked);
			} finally {
				timer.cancel();
			}
		},
		stream: (...call) => transport.stream(...call),
	};
}
