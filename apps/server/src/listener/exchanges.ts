import type { Http2Session } from "node:http2";
import type { Clock, Logger, Timer } from "@plinth/runtime";
import { Connection } from "./connection.ts";
import { type CutReason, Exchange, type ExchangeKeeper, type ExchangeKind } from "./exchange.ts";
import type { ListenerLimits } from "./limits.ts";
import type { RequestHandler } from "./request-handler.ts";

/** What exchanges are kept with. */
export interface ExchangesOptions {
	readonly clock: Clock;
	readonly logger: Logger;
	readonly limits: ListenerLimits;
	/** Streams may wait for their clients without limit, as those of other deployments. */
	readonly streamsMayStall?: boolean;
	/** Counts an exchange that the server ended. */
	readonly onCut?: (reason: CutReason | "abandoned") => void;
}

/** How often exchanges are checked at most, in milliseconds. */
const longestSweepMs = 1_000;

/** How long a client has to acknowledge that it still reads, in milliseconds. */
const probeMs = 10_000;

/** Responses that no other limit counts, and that may wait to be taken at once. */
const shortResponses = 1_000;

/**
 * All exchanges of a listener. One timer checks them all:
 *
 * - what waits for a client that takes nothing, for a request that does not arrive, or for a message on a
 *   stream that is still open, is ended after its limit;
 * - bytes that wait to be sent are counted. Where there are too many on a connection, the response that
 *   adds to them is dropped; where there are too many in all, the holder with the most loses its largest;
 * - exchanges that count for no other limit (refusals, plain HTTP, health checks) are answered at once, so
 *   one that remains is not being taken: past `shortResponses` the oldest gives way.
 *
 * Time is counted in sweeps: a process that stood still does not take that for its clients' fault.
 */
export class Exchanges implements ExchangeKeeper {
	readonly #options: ExchangesOptions;
	readonly #sweepMs: number;
	readonly #connections = new WeakMap<object, Connection>();
	readonly #all = new Set<Exchange>();
	/** Those that are not admitted, the oldest first. */
	readonly #short = new Set<Exchange>();
	/** Those with bytes that wait to be sent. */
	readonly #waiting = new Set<Exchange>();
	#pendingBytes = 0;
	#nowMs = 0;
	#sweep: Timer | undefined;

	constructor(options: ExchangesOptions) {
		const { writeStallMs, requestMs, streamIdleMs } = options.limits;
		this.#options = options;
		this.#sweepMs = Math.min(longestSweepMs, writeStallMs, requestMs, streamIdleMs);
	}

	get nowMs(): number {
		return this.#nowMs;
	}

	/** Bytes of all responses that wait for their clients. */
	get pendingBytes(): number {
		return this.#pendingBytes;
	}

	/** Exchanges that hold anything: not taken, or with a handler that has not returned. */
	get open(): number {
		return this.#all.size;
	}

	/** A request has arrived. */
	begin(
		kind: ExchangeKind,
		request: Parameters<RequestHandler>[0],
		response: Parameters<RequestHandler>[1],
	): Exchange {
		const connection = this.connectionOf(request, response);
		const exchange = new Exchange(this, connection, kind, request, response);
		connection.exchanges.add(exchange);
		this.#all.add(exchange);
		this.#addShort(exchange);
		this.#sweep ??= this.#options.clock.setTimer(this.#sweepMs, this.#onSweep);
		return exchange;
	}

	/** A request has arrived that gets a plain response at once. */
	readonly beginPlain: RequestHandler = (request, response) => {
		this.begin("plain", request, response).wrote();
	};

	added(exchange: Exchange, bytes: number): void {
		const { limits } = this.#options;
		const { connection, holder } = exchange;
		this.#pendingBytes += bytes;
		holder.pendingBytes += bytes;
		if (holder !== connection) {
			connection.pendingBytes += bytes;
		}
		this.#waiting.add(exchange);
		if (
			connection.pendingBytes > limits.pendingBytesPerConnection &&
			connection.pendingBytes > exchange.pendingBytes
		) {
			exchange.cut("pending_bytes");
		}
		while (this.#pendingBytes > limits.pendingBytes) {
			const largest = largestOf(this.#waiting);
			if (largest === undefined) {
				return;
			}
			largest.cut("pending_bytes");
		}
	}

	removed(exchange: Exchange, bytes: number): void {
		const { connection, holder } = exchange;
		this.#pendingBytes -= bytes;
		holder.pendingBytes -= bytes;
		if (holder !== connection) {
			connection.pendingBytes -= bytes;
		}
		if (exchange.pendingBytes === 0) {
			this.#waiting.delete(exchange);
		}
	}

	admitted(exchange: Exchange): void {
		this.#short.delete(exchange);
	}

	dismissed(exchange: Exchange): void {
		this.#addShort(exchange);
	}

	closed(exchange: Exchange): void {
		this.#short.delete(exchange);
		exchange.connection.exchanges.delete(exchange);
	}

	released(exchange: Exchange): void {
		this.#all.delete(exchange);
	}

	cut(_exchange: Exchange, reason: CutReason): void {
		this.#options.onCut?.(reason);
	}

	#addShort(exchange: Exchange): void {
		this.#short.add(exchange);
		if (this.#short.size > shortResponses) {
			const [oldest] = this.#short;
			oldest?.cut("short_responses");
		}
	}

	readonly #onSweep = (): void => {
		const { clock, limits, logger, streamsMayStall = false, onCut } = this.#options;
		this.#nowMs += this.#sweepMs;
		for (const exchange of this.#all) {
			const mayStall = streamsMayStall && exchange.kind !== "unary" && exchange.kind !== "plain";
			if (exchange.check(limits, mayStall) === "abandoned") {
				onCut?.("abandoned");
				logger.warn({ path: exchange.path }, "a handler did not return after its signal aborted");
			}
		}
		this.#sweep = this.#all.size === 0 ? undefined : clock.setTimer(this.#sweepMs, this.#onSweep);
	};

	/** The connection that a request has arrived on. */
	connectionOf(
		request: Parameters<RequestHandler>[0],
		response: Parameters<RequestHandler>[1],
	): Connection {
		const key = "stream" in response ? response.stream.session : request.socket;
		if (key === undefined) {
			// The session is gone already, and the request with it.
			return new Connection(undefined);
		}
		const known = this.#connections.get(key);
		if (known !== undefined) {
			return known;
		}
		const connection = new Connection(
			"stream" in response ? this.#probe(response.stream.session) : undefined,
		);
		this.#connections.set(key, connection);
		// Node reports the end of a connection of HTTP/1.1 to the first of pipelined responses alone.
		key.once("close", () => {
			for (const exchange of [...connection.exchanges]) {
				exchange.closed();
			}
		});
		return connection;
	}

	/**
	 * A stream that stalls may have a client that reads others. One that does not acknowledge a PING reads
	 * nothing at all, and its connection is closed.
	 */
	#probe(session: Http2Session | undefined): (() => void) | undefined {
		if (session === undefined) {
			return undefined;
		}
		let isPending = false;
		return () => {
			if (isPending || session.destroyed) {
				return;
			}
			isPending = true;
			const unanswered = this.#options.clock.setTimer(probeMs, () => session.destroy());
			session.ping((failure) => {
				isPending = false;
				if (failure === null) {
					unanswered.cancel();
				}
			});
		};
	}
}

/** The largest of the holder that has the most. */
function largestOf(waiting: Iterable<Exchange>): Exchange | undefined {
	let largest: Exchange | undefined;
	for (const exchange of waiting) {
		if (largest === undefined || isLarger(exchange, largest)) {
			largest = exchange;
		}
	}
	return largest;
}

function isLarger(a: Exchange, b: Exchange): boolean {
	return a.holder === b.holder
		? a.pendingBytes > b.pendingBytes
		: a.holder.pendingBytes > b.holder.pendingBytes;
}
