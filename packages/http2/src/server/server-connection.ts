import type { Duplex } from "node:stream";
import type { Timer } from "@plinth/runtime";
import { Connection } from "../connection/connection.ts";
import { errorCode } from "../error-code.ts";
import { maxInt31, setting } from "../frames/frame.ts";
import type { Http2CloseReason, Http2Connection, RequestHandler, ServeOptions } from "../http2.ts";
import { ServerStreams } from "./server-streams.ts";

/** The server's side of one connection. */
export class ServerConnection extends Connection implements Http2Connection {
	protected override readonly peerName = "client";
	protected override readonly streams: ServerStreams;
	/** Limits the wait for requests that are in flight when `close` is called. */
	#drainTimer: Timer | undefined;

	constructor(socket: Duplex, options: ServeOptions, onRequest: RequestHandler) {
		super(socket, options, true);
		const host = this.streamsHost(options.onHandlerError);
		this.streams = new ServerStreams({ ...host, connection: this, onRequest });
		this.start([[setting.maxConcurrentStreams, this.limits.maxConcurrentStreams]], options.head);
	}

	goaway(code: number, lastStreamId = this.streams.highestId): void {
		if (!this.isEnded) {
			const lastId = Math.min(this.streams.lastAcceptedId, lastStreamId);
			this.streams.lastAcceptedId = lastId;
			this.writer.goaway(lastId, code, "");
			this.scheduleFlush();
		}
	}

	async close(): Promise<Http2CloseReason> {
		if (this.state === "open") {
			this.state = "draining";
			this.goaway(errorCode.noError, maxInt31);
			this.#drainTimer = this.setTimer(this.limits.closeTimeoutMs, () => this.#drain());
			this.pings.send(
				() => this.#drain(),
				// Too many pings: the timer ends the wait.
				() => {},
			);
		}
		return this.closed;
	}

	/** All requests that the client sent before it received the GOAWAY have arrived. */
	#drain(): void {
		this.#drainTimer?.cancel();
		if (this.state === "draining") {
			this.goaway(errorCode.noError);
			this.endIfIdle();
		}
	}

	protected override get lastStreamId(): number {
		return Math.min(this.streams.highestId, this.streams.lastAcceptedId);
	}

	protected override endIfIdle(): void {
		if (
			this.state === "draining" &&
			this.streams.lastAcceptedId < maxInt31 &&
			this.streams.isIdle
		) {
			this.end();
		}
	}

	protected override onEnding(): void {
		this.#drainTimer?.cancel();
	}
}
