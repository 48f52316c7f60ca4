import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type StreamResponse, type Transport } from "@connectrpc/connect";
import type { Clock } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import { endpointsHeader } from "../protocol/endpoints-header.ts";
import { AddressChoice, type Addresses } from "./address-choice.ts";

/** Options of `createBalancedTransport`. */
export interface BalancedTransportOptions {
	/** Where the deployment may be reached now. */
	readonly addresses: () => Addresses;
	/** Creates a transport to an address, or returns the one that it has created before. */
	readonly connect: (address: string) => Transport;
	/** Called with the value of `x-plinth-endpoints` of each response that has it. */
	readonly onEndpoints: (value: string) => void;
	/** The value of `x-plinth-endpoints` that requests have: the servers of the caller. */
	readonly ownEndpoints: () => string;
	/** Called with the uid of this deployment when it is refused because it was deleted. */
	readonly onDeleted?: (uid: string) => void;
	/** Called when a call is refused because another deployment has taken over, with the uids of both. */
	readonly onSucceeded?: (uid: string, successorUid: string) => void;
	readonly clock: Clock;
}

/** How often an idempotent call is tried, at a different address each time. */
const maxAttempts = 3;

/** The share of the time left that an attempt gets while another server may respond instead. */
const attemptShare = 1 / 3;

/** How long a deployment counts as slow after a late response. */
const slowMs = 60_000;

/**
 * A transport to all servers of a deployment. Calls go to them in turns. An address that can't be reached, or does not
 * respond in time, is avoided for a while, and an idempotent call is repeated at the next one:
 *
 *     call ──▶ server a ──no response──▶ server b ──▶ response, with the servers that run
 *
 * - What a server of the deployment responds is final, unless it does not name itself among the running ones: it is
 *   starting or about to stop. All other responses that mean Unavailable are repeated.
 * - The deadline of a call holds for all its attempts. While another running server could still respond, an attempt ends
 *   after a third of the time left (`AttemptTimeouts`); the last one gets all of it.
 * - A stream is not repeated: its caller opens it again.
 */
export function createBalancedTransport(options: BalancedTransportOptions): Transport {
	const { connect, clock, ownEndpoints } = options;
	const choice = new AddressChoice(options);
	const timeouts = new AttemptTimeouts(clock);
	const withEndpoints = (header: Parameters<Transport["unary"]>[3]) => {
		const named = new Headers(header);
		named.set(endpointsHeader, ownEndpoints());
		return named;
	};
	return {
		async unary(method, signal, timeoutMs, header, input, contextValues) {
			const endMs = timeoutMs === undefined ? undefined : clock.monotonic() + timeoutMs;
			const tried = new Set<string>();
			for (;;) {
				const address = choice.next(tried);
				tried.add(address);
				const startMs = clock.monotonic();
				const leftMs = endMs === undefined ? undefined : Math.max(1, endMs - startMs);
				const mayFollow = isIdempotent(method) && tried.size < maxAttempts;
				const attemptMs = leftMs && timeouts.next(leftMs, mayFollow && choice.hasResponsive(tried));
				try {
					const transport = connect(address);
					const response = await transport.unary(
						method,
						signal,
						attemptMs,
						withEndpoints(header),
						input,
						contextValues,
					);
					choice.responded(address, response.header);
					if (leftMs !== undefined) {
						timeouts.responded(leftMs, clock.monotonic() - startMs);
					}
					return response;
				} catch (failure) {
					// The server may have ended the attempt itself, by the timeout that it was told.
					const isCutOff =
						attemptMs !== leftMs && ConnectError.from(failure).code === Code.DeadlineExceeded;
					const wasShort = isCutOff || tried.size > 1;
					const mayRespond = choice.failed(address, failure, startMs, wasShort) || isCutOff;
					const hasTime = endMs === undefined || clock.monotonic() < endMs;
					if (!mayFollow || !mayRespond || !choice.hasOther(tried) || !hasTime || signal?.aborted) {
						throw failure;
					}
				}
			}
		},
		async stream(method, signal, timeoutMs, header, input, contextValues) {
			const address = choice.next(new Set());
			const startMs = clock.monotonic();
			try {
				const transport = connect(address);
				const response = await transport.stream(
					method,
					signal,
					timeoutMs,
					withEndpoints(header),
					input,
					contextValues,
				);
				return withMessages(response, observed(choice, { address, startMs }, response));
			} catch (failure) {
				choice.failed(address, failure, startMs);
				throw failure;
			}
		},
	};
}

/** The response with other messages. Its headers and trailers may be made on first access: a copy would lose them. */
export function withMessages<I extends DescMessage, O extends DescMessage>(
	response: StreamResponse<I, O>,
	message: AsyncIterable<MessageShape<O>>,
): StreamResponse<I, O> {
	return {
		stream: true,
		service: response.service,
		method: response.method,
		message,
		get header() {
			return response.header;
		},
		get trailer() {
			return response.trailer;
		},
	};
}

function isIdempotent({ idempotency }: DescMethod): boolean {
	return idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN;
}

/** The messages of a stream. The first one shows that the address can be reached. */
async function* observed<I extends DescMessage, O extends DescMessage>(
	choice: AddressChoice,
	{ address, startMs }: { readonly address: string; readonly startMs: number },
	response: StreamResponse<I, O>,
) {
	let hasResponded = false;
	try {
		for await (const each of response.message) {
			if (!hasResponded) {
				hasResponded = true;
				choice.responded(address, response.header);
			}
			yield each;
		}
	} catch (failure) {
		choice.failed(address, failure, startMs);
		throw failure;
	}
}

/**
 * How long the attempts of the calls to one deployment may take. A server that hangs, or is cut off from the network,
 * refuses nothing: an attempt there must end early enough for another server to respond.
 *
 *     |── server a ──|──────── server b ────────|
 *     0            1/3                      deadline
 *
 * A slow deployment looks the same at first, and there a second attempt only adds load. So once a response has come
 * later than a shortened attempt would have waited for it, attempts get the whole deadline for a minute.
 */
class AttemptTimeouts {
	readonly #clock: Pick<Clock, "monotonic">;
	#slowUntilMs = Number.NEGATIVE_INFINITY;

	constructor(clock: Pick<Clock, "monotonic">) {
		this.#clock = clock;
	}

	/**
	 * The timeout of the next attempt of a call.
	 *
	 * @param leftMs - the time left until the deadline of the call.
	 * @param hasOther - whether another server that responded last time could be called afterwards.
	 */
	next(leftMs: number, hasOther: boolean): number {
		const isWhole = !hasOther || this.#clock.monotonic() < this.#slowUntilMs;
		return isWhole || isPlanted("give one attempt the whole deadline") ? leftMs : shortened(leftMs);
	}

	/** A server has responded to an attempt that began when `leftMs` were left. */
	responded(leftMs: number, tookMs: number): void {
		if (tookMs > shortened(leftMs)) {
			this.#slowUntilMs = this.#clock.monotonic() + slowMs;
		}
	}
}

function shortened(leftMs: number): number {
	return Math.ceil(leftMs * attemptShare);
}
