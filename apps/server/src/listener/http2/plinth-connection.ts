import type { Socket } from "node:net";
import {
	errorCode,
	type Http2Connection,
	type Http2Limits,
	type Http2Stream,
	type RequestHead,
	type ServeOptions,
	type StreamHandler,
	serveHttp2,
} from "@plinth/http2";
import type { Timer } from "@plinth/runtime";
import type { Http2ServerOptions } from "./http2-server.ts";
import { PlinthStream, type StreamConnection } from "./plinth-stream.ts";
import { serveRequest } from "./serve-request.ts";

/** A connection of `@plinth/http2`. It is closed when it has had no stream for `idleMs`. */
export class PlinthConnection implements StreamConnection {
	readonly isMultiplexed = true;
	readonly isEncrypted: boolean;
	readonly remoteAddress: string;
	readonly #socket: Socket;
	readonly #options: Http2ServerOptions;
	/** Set with the first request, which may come before `start` has returned, or by `start`. */
	#http2: Http2Connection | undefined;
	#hasHeaders = false;
	#streams = 0;
	/** The time at which the last stream ended. */
	#idleSinceMs: number;
	/** The timer of the check whether the connection is idle, or of the wait before it closes. */
	#timer: Timer | undefined;

	constructor(socket: Socket, options: Http2ServerOptions) {
		this.#socket = socket;
		this.#options = options;
		this.isEncrypted = "encrypted" in socket;
		this.remoteAddress = socket.remoteAddress ?? "";
		this.#idleSinceMs = options.clock.monotonic();
	}

	/** @param head - bytes that were read from the socket already. */
	start(head: Buffer, limits: Partial<Http2Limits>): void {
		const { clock, logger } = this.#options;
		this.#timer = clock.setTimer(this.#options.limits.idleMs, this.#checkIdle);
		const options: ServeOptions = {
			...{ limits, clock, head },
			onHandlerError: (error) => logger.error({ err: error }, "a request could not be handled"),
			onInternalError: (error) =>
				logger.error({ err: error }, "an HTTP/2 connection failed because of an internal error"),
		};
		this.#http2 = serveHttp2(this.#socket, options, this.#onRequest);
		void this.#http2.closed.then(({ code, message }) => {
			this.#timer?.cancel();
			if (message !== "") {
				logger.debug({ code, reason: message }, "an HTTP/2 connection failed");
			}
		});
	}

	readonly #onRequest = (
		stream: Http2Stream,
		head: RequestHead,
		connection: Http2Connection,
	): StreamHandler => {
		this.#http2 = connection;
		if (!this.#hasHeaders) {
			this.#hasHeaders = true;
			this.#options.onHeaders(this.#socket);
		}
		this.#streams += 1;
		const call = new PlinthStream(this, stream, head);
		serveRequest(call, this.#options.handler);
		return call;
	};

	streamClosed(): void {
		this.#streams -= 1;
		if (this.#streams === 0) {
			this.#idleSinceMs = this.#options.clock.monotonic();
		}
	}

	/** One timer for all requests: short calls would set one after the other. */
	readonly #checkIdle = (): void => {
		const { clock, limits } = this.#options;
		const idleMs = this.#streams > 0 ? 0 : clock.monotonic() - this.#idleSinceMs;
		if (idleMs >= limits.idleMs) {
			void this.#http2?.close();
		} else {
			this.#timer = clock.setTimer(limits.idleMs - idleMs, this.#checkIdle);
		}
	};

	onceClosed(listener: () => void): void {
		this.#socket.once("close", listener);
	}

	ping(done: () => void): void {
		// Set, because a PING follows a request. It rejects when too many are outstanding, too.
		this.#http2?.ping().then(done, done);
	}

	destroy(code: number = errorCode.noError): void {
		this.#http2?.destroy(code);
	}

	/**
	 * Closes the connection gracefully. Not immediately: clients that are about to open a stream when they are told to
	 * open no more treat it as a failure, and clients that have received Unavailable before do not open one.
	 */
	close(): void {
		const { clock, limits } = this.#options;
		this.#timer?.cancel();
		this.#timer = clock.setTimer(limits.lingerMs / 2, () => void this.#http2?.close());
	}
}
