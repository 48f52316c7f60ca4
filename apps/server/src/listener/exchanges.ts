import { errorCode } from "@plinth/http2";
import { type Clock, LinkedList, type Logger, type Timer } from "@plinth/runtime";
import { Connection, type Usage } from "./connection.ts";
import { type CutReason, Exchange, type ExchangeKeeper, type ExchangeKind } from "./exchange.ts";
import type { ListenerLimits } from "./limits.ts";
import type {
	HttpConnection,
	HttpRequest,
	HttpResponse,
	RequestHandler,
} from "./request-handler.ts";

/** Options of `Exchanges`. */
export interface ExchangesOptions {
	readonly clock: Clock;
	readonly logger: Logger;
	readonly limits: ListenerLimits;
	/** Whether streams may wait for their clients without limit, as those of other deployments do. */
	readonly streamsMayStall?: boolean;
	/** Called when the server ends an exchange early. */
	readonly onCut?: (reason: CutReason | "abandoned") => void;
}

/** The longest interval between checks of the exchanges, in milliseconds. */
const longestSweepMs = 1_000;

/** How long a client has to acknowledge a PING, in milliseconds. */
const probeMs = 10_000;

/** The maximum number of unread responses that no other limit counts. */
const shortResponses = 1_000;

/**
 * All exchanges of a listener. One timer checks them all:
 *
 * - an exchange is ended if its client reads nothing for too long, if its request does not arrive in time, or if a
 *   stream that the client can still write to is idle for too long;
 * - unread response bytes are counted. If a connection has too many, the response that adds to them is ended; if
 *   there are too many in total, the largest response of the subject or connection with the most is ended. Plain HTTP,
 *   which needs no token, counts together as one caller, however many connections it uses. Its response that was not read
 *   for the longest time is ended: a client that reads without pauses loses nothing while others stall;
 * - exchanges that count for no other limit (refusals, plain HTTP, health checks) send short responses immediately, so
 *   one that remains is not being read: above `shortResponses`, the one not read for the longest time is ended.
 *
 * Time is counted in sweeps, so that a pause of the process is not attributed to clients.
 */
export class Exchanges implements ExchangeKeeper {
	readonly #options: ExchangesOptions;
	readonly #sweepMs: number;
	readonly #connections = new WeakMap<HttpConnection, Connection>();
	readonly #all = new LinkedList<Exchange>();
	/** Exchanges that are not admitted, the one that has made no progress for the longest time first. */
	readonly #short = new LinkedList<Exchange>();
	/** The usage of all plain HTTP. */
	readonly #plain: Usage = { calls: 0, pendingBytes: 0 };
	/**
	 * Connections that must acknowledge a PING, with the time at which they are closed otherwise. All clients of an agent
	 * share one.
	 */
	readonly #probes = new Map<HttpConnection, number>();
	/**
	 * Connections that are sent a PING by the next sweep in which none is outstanding, with the earliest time at which they
	 * are closed. An outstanding PING shows nothing about responses that were written after it.
	 */
	readonly #toProbe = new Map<HttpConnection, number>();
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

	/** Unread bytes of all responses. */
	get pendingBytes(): number {
		return this.#pendingBytes;
	}

	/** Exchanges whose response was not read, or whose handler has not returned. */
	get open(): number {
		return this.#all.size;
	}

	/** A request has arrived. */
	begin(kind: ExchangeKind, request: HttpRequest, response: HttpResponse): Exchange {
		const connection = this.connectionOf(request);
		const usage = kind === "plain" ? this.#plain : connection;
		const exchange = new Exchange(this, connection, usage, kind, request, response);
		connection.pipelined?.add(exchange);
		exchange.place = this.#all.append(exchange);
		this.#addShort(exchange);
		this.#sweep ??= this.#options.clock.setTimer(this.#sweepMs, this.#onSweep);
		return exchange;
	}

	/** A request has arrived that gets a plain response immediately. */
	readonly beginPlain: RequestHandler = (request, response) => {
		this.begin("plain", request, response).wrote();
	};

	added(exchange: Exchange, bytes: number): void {
		const { limits } = this.#options;
		const { connection, usage } = exchange;
		this.#pendingBytes += bytes;
		usage.pendingBytes += bytes;
		if (usage !== connection) {
			connection.pendingBytes += bytes;
		}
		if (
			connection.pendingBytes > limits.pendingBytesPerConnection &&
			connection.pendingBytes > exchange.pendingBytes
		) {
			exchange.cut("pending_bytes");
		}
		while (this.#pendingBytes > limits.pendingBytes) {
			const next = this.#nextToCut();
			if (next === undefined) {
				return;
			}
			next.cut("pending_bytes");
		}
	}

	removed(exchange: Exchange, bytes: number): void {
		const { connection, usage } = exchange;
		this.#pendingBytes -= bytes;
		usage.pendingBytes -= bytes;
		if (usage !== connection) {
			connection.pendingBytes -= bytes;
		}
		if (exchange.shortPlace?.list !== undefined && !exchange.isClosed) {
			exchange.shortPlace.remove();
			exchange.shortPlace = this.#short.append(exchange);
		}
	}

	admitted(exchange: Exchange): void {
		exchange.shortPlace?.remove();
	}

	dismissed(exchange: Exchange): void {
		this.#addShort(exchange);
	}

	closed(exchange: Exchange): void {
		exchange.shortPlace?.remove();
		exchange.connection.pipelined?.delete(exchange);
	}

	released(exchange: Exchange): void {
		exchange.place?.remove();
	}

	cut(_exchange: Exchange, reason: CutReason): void {
		this.#options.onCut?.(reason);
	}

	/** Of the usage with the most unread bytes: the largest exchange or, of plain ones, that with the oldest progress. */
	#nextToCut(): Exchange | undefined {
		let found: Exchange | undefined;
		for (const exchange of this.#all) {
			if (exchange.pendingBytes > 0 && (found === undefined || this.#precedes(exchange, found))) {
				found = exchange;
			}
		}
		return found;
	}

	/** Whether an exchange is cut before one that has begun before it. */
	#precedes(exchange: Exchange, older: Exchange): boolean {
		const { usage } = exchange;
		if (usage !== older.usage) {
			return usage.pendingBytes > older.usage.pendingBytes;
		}
		return usage === this.#plain
			? exchange.progressMs < older.progressMs
			: exchange.pendingBytes > older.pendingBytes;
	}

	#addShort(exchange: Exchange): void {
		if (exchange.shortPlace?.list === undefined) {
			exchange.shortPlace = this.#short.append(exchange);
		}
		if (this.#short.size > shortResponses) {
			this.#short.first?.cut("short_responses");
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
		for (const [connection, dueMs] of this.#probes) {
			if (this.#nowMs >= dueMs) {
				this.#probes.delete(connection);
				this.#toProbe.delete(connection);
				connection.destroy(errorCode.noError);
			}
		}
		this.#sendProbes();
		const isIdle = this.#all.size === 0 && this.#probes.size === 0 && this.#toProbe.size === 0;
		this.#sweep = isIdle ? undefined : clock.setTimer(this.#sweepMs, this.#onSweep);
	};

	/** The connection of a request. */
	connectionOf(request: Pick<HttpRequest, "connection" | "client">): Connection {
		const key = request.client ?? request.connection;
		const known = this.#connections.get(key);
		if (known !== undefined) {
			return known;
		}
		const connection = new Connection(key.isMultiplexed);
		this.#connections.set(key, connection);
		const { pipelined } = connection;
		if (pipelined !== undefined) {
			key.onceClosed(() => {
				for (const exchange of [...pipelined]) {
					exchange.closed();
				}
			});
		}
		return connection;
	}

	/**
	 * The client of a stalled stream may still read other streams. A client that does not acknowledge a PING reads
	 * nothing at all, and its connection is closed. If its stream was reset for another reason, not before its response would
	 * have stalled: the acknowledgment of a client that reads slowly may take longer than `probeMs`.
	 */
	probe(connection: HttpConnection, progressMs: number): void {
		const stalledMs = progressMs + this.#options.limits.writeStallMs;
		const dueMs = Math.max(this.#nowMs, stalledMs) + probeMs;
		const knownMs = this.#toProbe.get(connection) ?? Number.POSITIVE_INFINITY;
		this.#toProbe.set(connection, Math.min(dueMs, knownMs));
	}

	/** At most one PING for each connection and sweep, however many responses are cut: clients limit PINGs. */
	#sendProbes(): void {
		for (const [connection, dueMs] of this.#toProbe) {
			if (!this.#probes.has(connection)) {
				this.#toProbe.delete(connection);
				this.#probes.set(connection, Math.max(dueMs, this.#nowMs + probeMs));
				connection.ping(() => this.#probes.delete(connection));
			}
		}
	}
}
