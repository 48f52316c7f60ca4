import type { Duplex } from "node:stream";
import { Connection } from "../connection/connection.ts";
import { errorCode } from "../error-code.ts";
import { setting } from "../frames/frame.ts";
import type {
	ConnectOptions,
	Fields,
	Http2ClientConnection,
	Http2ClientStream,
	Http2CloseReason,
	Http2Limits,
	ResponseHandler,
} from "../http2.ts";
import { ClientStreams } from "./client-streams.ts";

/**
 * The limits of clients that differ from those of servers: a server that ends or resets all calls of a busy client at
 * once, or sends what is on its way for calls that were canceled, does no harm.
 */
const clientLimits: Partial<Http2Limits> = {
	maxHeaderListBytes: 64 * 1024,
	controlFrames: { burst: 100_000, perSecond: 10_000 },
	settingsFrames: { burst: 100_000, perSecond: 10_000 },
	streamErrors: { burst: 100_000, perSecond: 10_000 },
	stallTimeoutMs: Number.POSITIVE_INFINITY,
	// What waits belongs to the callers, who know how much it is.
	maxUnsentBytes: Number.POSITIVE_INFINITY,
};

/** The client's side of one connection. */
export class ClientConnection extends Connection implements Http2ClientConnection {
	protected override readonly peerName = "server";
	protected override readonly streams: ClientStreams;
	readonly #options: ConnectOptions;

	constructor(socket: Duplex, options: ConnectOptions) {
		super(socket, { ...options, limits: { ...clientLimits, ...options.limits } }, false);
		this.#options = options;
		this.streams = new ClientStreams(this.streamsHost(options.onHandlerError));
		this.writer.preface();
		this.start([[setting.enablePush, 0]], undefined);
	}

	get isOpen(): boolean {
		return this.state === "open" && this.streams.hasIdentifiers;
	}

	get maxConcurrentStreams(): number {
		return this.peer.maxConcurrentStreams;
	}

	request(fields: Fields, handler: ResponseHandler): Http2ClientStream {
		if (!this.isOpen) {
			throw new Error("the connection accepts no requests");
		}
		return this.streams.request(fields, handler);
	}

	async close(): Promise<Http2CloseReason> {
		if (this.state === "open") {
			this.state = "draining";
			this.endIfIdle();
		}
		return this.closed;
	}

	/** The server opens no streams. */
	protected override get lastStreamId(): number {
		return 0;
	}

	protected override endIfIdle(): void {
		if (this.state === "draining" && this.streams.isIdle) {
			this.fail(errorCode.noError, "");
		}
	}

	protected override onSettings(): void {
		this.streams.openWaiting();
		this.#options.onSettings?.();
	}

	protected override onGoaway(lastStreamId: number, code: number, debugData: Buffer): void {
		if (this.state === "open") {
			this.state = "draining";
		}
		const refused = this.streams.closeAbove(lastStreamId);
		try {
			this.#options.onGoaway?.(lastStreamId, code, debugData);
		} finally {
			for (const stream of refused) {
				stream.deliverReset(errorCode.refusedStream, "peer");
			}
		}
		if (code === errorCode.noError) {
			this.endIfIdle();
		} else {
			this.endWith({ code, message: "the server has ended the connection" });
		}
	}

	protected override onEnding(reason: Http2CloseReason): void {
		this.#options.onEnding?.(reason);
	}
}
