import {
	Code,
	ConnectError,
	createConnectRouter,
	createContextKey,
	createContextValues,
} from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { correctConnectErrors } from "@plinth/resource-service";
import type { Clock, Logger, Timer } from "@plinth/runtime";
import {
	Health,
	type HealthCheckResponse_ServingStatus as Status,
} from "../gen/grpc/health/v1/health_pb.ts";
import type { Admission, Exchange } from "../listener/exchange.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import type { HttpRequest, HttpResponse } from "../listener/request-handler.ts";
import { requestHead } from "../listener/rpc-handler.ts";
import { sendResponse, writeHead } from "../listener/send-response.ts";

/** How often the status is compared with the one that watches have received, in milliseconds. */
const pollMs = 500;

/** Options of `HealthWatches`. */
export interface HealthWatchesOptions {
	readonly statusOf: (service: string) => Status;
	readonly messageBytes: number;
	readonly limits: Pick<ListenerLimits, "healthWatches" | "healthWatchesPerConnection">;
	readonly clock: Clock;
	readonly logger: Logger;
	/** Ends watches with its reason. */
	readonly streamsEnd: AbortSignal;
}

/** The instruction for one run of the method, and its result. */
interface Run {
	/** Ends the watch. */
	readonly failure?: ConnectError;
	/** The requested service and its status; absent if the request was refused. */
	sent?: { readonly service: string; readonly status: Status };
}

const runKey = createContextKey<Run>({});

/** A stream between two messages. */
interface Watch {
	readonly exchange: Exchange;
	readonly request: HttpRequest;
	readonly response: HttpResponse;
	/** The bytes of the request body, one per character: a string uses less memory than a buffer. */
	readonly body: string;
	readonly service: string;
	status: Status;
}

/**
 * Serves `grpc.health.v1.Health/Watch`. It requires no token, so a stream must use almost no memory: between two
 * messages it consists of an HTTP stream and the bytes of its request. For each message, the method runs again on these
 * bytes up to its first message, and all streams share one poll of the status. Streams have their own limits, per
 * connection and in total. Deadlines are enforced by clients.
 */
export class HealthWatches implements Admission {
	readonly path: string;
	readonly #options: HealthWatchesOptions;
	readonly #handler: UniversalHandler;
	readonly #watches = new Set<Watch>();
	#open = 0;
	#poll: Timer | undefined;

	constructor(options: HealthWatchesOptions) {
		const { messageBytes, statusOf, streamsEnd } = options;
		this.#options = options;
		const router = createConnectRouter({
			readMaxBytes: messageBytes,
			requestGate: (call) => {
				correctConnectErrors(call);
				const { failure } = call.values.get(runKey);
				if (failure !== undefined) {
					throw failure;
				}
			},
		});
		router.service(Health, {
			async *watch({ service }, { values }) {
				const status = statusOf(service);
				values.get(runKey).sent = { service, status };
				yield { status };
			},
		});
		const handler = router.handlers.find(({ method }) => method === Health.method.watch);
		if (handler === undefined) {
			throw new Error("the router has a handler for each method of its services");
		}
		this.#handler = handler;
		this.path = handler.requestPath;
		streamsEnd.addEventListener("abort", () => this.#endAll(), { once: true });
	}

	/** Open streams. */
	get open(): number {
		return this.#open;
	}

	leave({ connection }: Exchange): void {
		this.#open -= 1;
		connection.healthWatches -= 1;
	}

	/** Serves a request to `path`. */
	readonly serve = (exchange: Exchange, request: HttpRequest, response: HttpResponse): void => {
		this.#begin(exchange, request, response)
			.catch((failure: unknown) => {
				this.#options.logger.debug({ err: failure }, "a health watch ended early");
				exchange.destroy();
			})
			.finally(() => exchange.settled());
	};

	async #begin(exchange: Exchange, request: HttpRequest, response: HttpResponse): Promise<void> {
		const failure = this.#refusal(exchange);
		if (failure === undefined) {
			this.#open += 1;
			exchange.connection.healthWatches += 1;
			exchange.admit(this);
		}
		const run: Run = failure === undefined ? {} : { failure };
		const chunks: Uint8Array[] = [];
		const result = await this.#run(request, recorded(exchange.body, chunks), run);
		if (run.sent === undefined) {
			await sendResponse(result, exchange, response);
			return;
		}
		await sendFirst(result, exchange, response);
		const watch = {
			exchange,
			request,
			response,
			body: Buffer.concat(chunks).toString("latin1"),
			...run.sent,
		};
		this.#watches.add(watch);
		exchange.park();
		if (this.#options.streamsEnd.aborted) {
			this.#end(watch);
		}
		this.#poll ??= this.#options.clock.setTimer(pollMs, this.#onPoll);
	}

	#refusal({ connection }: Exchange): ConnectError | undefined {
		const { limits, streamsEnd } = this.#options;
		if (streamsEnd.aborted) {
			return ConnectError.from(streamsEnd.reason);
		}
		if (connection.healthWatches >= limits.healthWatchesPerConnection) {
			return new ConnectError(
				`too many health watches on one connection: the limit is ${limits.healthWatchesPerConnection}, and one is enough`,
				Code.ResourceExhausted,
			);
		}
		return this.#open < limits.healthWatches
			? undefined
			: new ConnectError(
					`too many health watches: the limit is ${limits.healthWatches} in total; call Check instead, or try again later`,
					Code.ResourceExhausted,
				);
	}

	/** Runs the method up to its first message. */
	async #run(
		request: HttpRequest,
		body: AsyncIterable<Uint8Array>,
		run: Run,
	): Promise<UniversalServerResponse> {
		const head = requestHead(request);
		if (head === undefined) {
			return { status: 400 };
		}
		const { signal } = new AbortController();
		const contextValues = createContextValues().set(runKey, run);
		return this.#handler({ ...head, body, signal, contextValues });
	}

	readonly #onPoll = (): void => {
		const { statusOf, clock } = this.#options;
		const statuses = new Map<string, Status>();
		for (const watch of this.#watches) {
			const { exchange, service } = watch;
			if (exchange.isClosed) {
				this.#watches.delete(watch);
				continue;
			}
			const status = statuses.get(service) ?? statusOf(service);
			statuses.set(service, status);
			// A client that has not read the last message skips the changes until it has.
			if (status !== watch.status && exchange.pendingBytes === 0) {
				watch.status = status;
				this.#send(watch).catch(() => exchange.destroy());
			}
		}
		this.#poll = this.#watches.size === 0 ? undefined : clock.setTimer(pollMs, this.#onPoll);
	};

	async #send({ exchange, request, response, body }: Watch): Promise<void> {
		await sendFirst(await this.#run(request, once(body), {}), exchange, response);
	}

	#endAll(): void {
		for (const watch of this.#watches) {
			this.#end(watch);
		}
		this.#watches.clear();
	}

	#end({ exchange, request, response, body }: Watch): void {
		const failure = ConnectError.from(this.#options.streamsEnd.reason);
		this.#run(request, once(body), { failure })
			.then((result) => sendResponse(result, exchange, response))
			.catch(() => exchange.destroy());
	}
}

/** Sends the first message, and ends the method. */
async function sendFirst(
	{ status, header, body }: UniversalServerResponse,
	exchange: Exchange,
	response: HttpResponse,
): Promise<void> {
	const chunks = body?.[Symbol.asyncIterator]();
	const first = await chunks?.next();
	await chunks?.return?.();
	writeHead(response, exchange, status, header);
	if (first !== undefined && first.done !== true) {
		exchange.write(first.value)?.catch(() => {});
	}
}

async function* recorded(
	body: AsyncIterable<Uint8Array>,
	chunks: Uint8Array[],
): AsyncIterable<Uint8Array> {
	for await (const chunk of body) {
		chunks.push(chunk);
		yield chunk;
	}
}

async function* once(body: string): AsyncIterable<Uint8Array> {
	yield Buffer.from(body, "latin1");
}
