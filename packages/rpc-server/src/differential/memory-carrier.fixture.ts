import { createContextValues } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import type { BodySink, Carrier, HeaderFields, RequestHead } from "../carrier.ts";
import type { RpcRouter } from "../router.ts";
import type { GeneratedCall } from "./generated-call.fixture.ts";

/** A response, in a form that can be compared. */
export interface Received {
	readonly status: number;
	readonly headers: HeaderFields;
	readonly body: string;
	readonly trailers: HeaderFields;
}

/** Carries a generated call, and records its response. */
class MemoryCarrier implements Carrier {
	readonly head: RequestHead;
	readonly values = createContextValues();
	onClose: undefined;
	readonly #call: GeneratedCall;
	readonly #receive: (received: Received) => void;
	#status = 0;
	#headers: HeaderFields = {};
	readonly #body: Uint8Array[] = [];

	constructor(call: GeneratedCall, receive: (received: Received) => void) {
		this.#call = call;
		this.head = headOf(call);
		this.#receive = receive;
	}

	read(sink: BodySink): void {
		if (this.#call.chunks.every((chunk) => sink.data(chunk))) {
			sink.end();
		}
	}

	respond(status: number, headers: HeaderFields): void {
		if (this.#status === 0) {
			this.#status = status;
			this.#headers = headers;
		}
	}

	write(data: Uint8Array): Promise<void> | undefined {
		this.#body.push(data);
		return this.#body.length % 2 === 0 ? Promise.resolve() : undefined;
	}

	end(data: Uint8Array | undefined, trailers: HeaderFields = {}): void {
		const body = Buffer.concat([...this.#body, ...(data === undefined ? [] : [data])]);
		this.#receive({
			status: this.#status,
			headers: { ...this.#headers },
			body: body.toString("latin1"),
			trailers: { ...trailers },
		});
	}

	cancel(): void {
		this.#receive({ status: 0, headers: {}, body: "canceled", trailers: {} });
	}
}

function headOf({ httpVersion, method, target, headers }: GeneratedCall): RequestHead {
	return {
		...{ httpVersion, method, target },
		url: `http://localhost${target}`,
		header: (name) => headers[name],
		headers: () => Object.entries(headers),
	};
}

/** The response of this package; `undefined` if the call is left to Connect. */
export async function byOwnPath(
	router: RpcRouter,
	call: GeneratedCall,
): Promise<Received | undefined> {
	const { promise, resolve } = Promise.withResolvers<Received>();
	const carrier = new MemoryCarrier(call, resolve);
	const plan = router.plan(call.target.split("?", 1)[0] ?? "", carrier.head);
	if (plan === undefined) {
		return undefined;
	}
	router.serve(plan, carrier);
	return promise;
}

/** The response of Connect's handler. */
export async function byConnect(
	handlers: readonly UniversalHandler[],
	{ httpVersion, method, target, headers, chunks }: GeneratedCall,
): Promise<Received> {
	const path = target.split("?", 1)[0];
	const handler = handlers.find(({ requestPath }) => requestPath === path);
	if (handler === undefined) {
		throw new Error(`there is no handler for ${path}`);
	}
	const response = await handler({
		...{ httpVersion, method },
		url: `http://localhost${target}`,
		header: new Headers(headers),
		body: iterable(chunks),
		signal: new AbortController().signal,
	});
	const body: Uint8Array[] = [];
	for await (const chunk of response.body ?? []) {
		body.push(chunk);
	}
	return {
		status: response.status,
		headers: Object.fromEntries(new Headers(response.header)),
		body: Buffer.concat(body).toString("latin1"),
		trailers: Object.fromEntries(new Headers(response.trailer)),
	};
}

async function* iterable(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array, undefined> {
	yield* chunks;
}
