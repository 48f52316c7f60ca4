import type { Duplex } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	connectHttp2,
	errorCode,
	type Fields,
	type Http2ClientConnection,
	type Http2ClientStream,
	type Http2CloseReason,
	type ResetOrigin,
	type ResponseHandler,
} from "@plinth/http2";
import type { Clock } from "@plinth/runtime";
import { nameOf } from "../call/stream-errors.ts";
import { KeepAlive, type KeepAliveOptions } from "./keep-alive.ts";
import {
	closedSilently,
	connectionError,
	lostConnection,
	protocolError,
	tlsExpected,
} from "./session-errors.ts";

/** The first byte of an alert of TLS (RFC 8446, section 5.1). A frame of HTTP/2 that begins with it would be too large. */
const tlsAlert = 0x15;

/** What a session needs to know. */
export interface SessionOptions extends KeepAliveOptions {
	/** The bytes that the server may send ahead of a reader: for each call, and for all of a session. */
	readonly callWindowBytes: number;
	readonly sessionWindowBytes: number;
	/** The time within which the server must send its settings, in milliseconds. */
	readonly connectTimeoutMs: number;
}

/** The notifications of a session to the connection that it belongs to. None may throw. */
export interface SessionOwner {
	/** The server speaks HTTP/2: its settings have arrived. */
	settingsReceived(session: Session): void;
	/** The session and its calls have ended. */
	ended(session: Session): void;
	/** The server has ended the session because it received too many pings. */
	tooManyPings(): void;
	/** The server accepts no new calls on the session. */
	goawayReceived(): void;
}

/**
 * One HTTP/2 session.
 *
 *   connecting ──▶ ready ──GOAWAY, too many calls──▶ draining ──last call ends──▶ ended
 *       └────────────┴──────────error, dead, idle, close()───────┴──────────────────▲
 *
 * While it is draining, its calls go on, and new ones are made on another session.
 */
export class Session {
	/** Creates the error with which the session and its calls ended, when a call needs it. */
	#failure: (() => ConnectError) | undefined;
	/** `http` or `https`, and the host and port of the server: what requests are addressed to. */
	readonly scheme: string;
	readonly host: string;
	readonly #connection: Http2ClientConnection;
	readonly #owner: SessionOwner;
	readonly #authority: string;
	readonly #keepAlive: KeepAlive;
	/** The number of open calls. */
	#open = 0;
	#speaksHttp2 = false;
	/** Whether the server has sent an alert of TLS in place of HTTP/2. */
	#speaksTls = false;
	#isDraining = false;

	/** @param socket - must be connected. */
	constructor(
		socket: Duplex,
		authority: string,
		owner: SessionOwner,
		clock: Clock,
		options: SessionOptions,
	) {
		const [scheme = "", host = ""] = authority.split("://");
		this.scheme = scheme;
		this.host = host;
		this.#authority = authority;
		this.#owner = owner;
		socket.once("data", ([first]: Buffer) => {
			this.#speaksTls = first === tlsAlert;
		});
		this.#connection = connectHttp2(socket, {
			clock,
			limits: {
				streamWindowBytes: options.callWindowBytes,
				connectionWindowBytes: options.sessionWindowBytes,
				prefaceTimeoutMs: options.connectTimeoutMs,
			},
			onSettings: () => {
				this.#speaksHttp2 = true;
				owner.settingsReceived(this);
			},
			onGoaway: (_, code, debugData) => this.#onGoaway(code, debugData),
			onEnding: (reason) => this.#onEnding(reason),
			onInternalError: (error) => {
				this.#failure ??= () => ConnectError.from(error, Code.Internal);
			},
		});
		this.#keepAlive = new KeepAlive(this.#connection, clock, options, {
			openCalls: () => this.#open,
			dead: () =>
				this.#end(() => lostConnection(authority, "did not respond to a ping", "ETIMEDOUT")),
			idle: () => this.#drain(),
		});
		// Only calls keep the process alive.
		this.#connection.unref();
	}

	/** Whether it accepts new calls. */
	get isReady(): boolean {
		return !this.#isDraining && this.#connection.isOpen;
	}

	get speaksHttp2(): boolean {
		return this.#speaksHttp2;
	}

	/** Whether it was unused for so long that it must be pinged before a call. */
	get needsVerification(): boolean {
		return this.#keepAlive.isStale;
	}

	/** Calls that the server processes at the same time; more wait on this side. 100 until it has sent its settings. */
	get maxConcurrentCalls(): number {
		return this.#connection.maxConcurrentStreams;
	}

	/** Makes a call. @throws Error if the session has just ended, or if a header is invalid. */
	open(fields: Fields, handler: ResponseHandler): Http2ClientStream {
		const stream = this.#connection.request(fields, handler);
		this.#open += 1;
		if (this.#open === 1) {
			this.#connection.ref();
			this.#keepAlive.used();
		}
		return stream;
	}

	/** A stream that `open` returned has closed. */
	closed(): void {
		this.#open -= 1;
		if (this.#open > 0) {
			return;
		}
		// Before it closes: a server that does not close its side would keep the process alive.
		this.#connection.unref();
		if (this.#isDraining) {
			void this.#connection.close();
			return;
		}
		this.#keepAlive.unused();
	}

	/** Why the session and its calls ended; `undefined` if it has not ended. */
	get failure(): ConnectError | undefined {
		return this.#failure?.();
	}

	/** Bytes have arrived. */
	arrived(): void {
		this.#keepAlive.arrived();
	}

	/** Pings the server. Resolves when it has responded, or with false when the session is dead. */
	async verify(): Promise<boolean> {
		// A call waits for it.
		this.#connection.ref();
		try {
			return await this.#keepAlive.verify();
		} finally {
			if (this.#open === 0) {
				this.#connection.unref();
			}
		}
	}

	/** Ends the session. Its calls fail with what `reason` returns. */
	close(reason: () => ConnectError): void {
		this.#end(reason);
	}

	#onGoaway(code: number, debugData: Uint8Array): void {
		this.#isDraining = true;
		this.#owner.goawayReceived();
		if (code === errorCode.noError) {
			return;
		}
		const isCalm = code === errorCode.enhanceYourCalm;
		const text = debugData.length === 0 ? "" : `: ${Buffer.from(debugData).toString("latin1")}`;
		this.#failure ??= () =>
			new ConnectError(
				`${this.#authority} closed the connection with error code ${nameOf(code)}${text}`,
				isCalm ? Code.ResourceExhausted : Code.Unavailable,
			);
		if (isCalm && text === ": too_many_pings") {
			this.#owner.tooManyPings();
		}
	}

	#onEnding({ code, message, cause }: Http2CloseReason): void {
		const authority = this.#authority;
		const speaksHttp2 = this.#speaksHttp2;
		this.#failure ??= () => {
			if (this.#speaksTls) {
				return tlsExpected(authority);
			}
			if (cause !== undefined) {
				return connectionError(authority, cause);
			}
			if (code !== errorCode.noError) {
				// What another protocol sends is no frame: its size says nothing.
				const isFrame = speaksHttp2 || code !== errorCode.frameSizeError;
				return protocolError(authority, isFrame ? message : "", speaksHttp2);
			}
			return speaksHttp2
				? lostConnection(authority, "closed the connection", "ECONNRESET")
				: closedSilently(authority);
		};
		this.#isDraining = true;
		this.#keepAlive.stop();
		this.#connection.unref();
		this.#owner.ended(this);
	}

	/** Unused for too long. */
	#drain(): void {
		this.#isDraining = true;
		void this.#connection.close();
	}

	#end(reason: () => ConnectError): void {
		this.#failure ??= reason;
		this.#connection.destroy(errorCode.cancel);
	}
}

/**
 * Whether it is certain that the server has not processed the call of a stream that was reset: it has refused the stream,
 * or excluded it with GOAWAY (RFC 9113, section 8.7), or the call was never sent.
 */
export function isExcluded(
	{ id }: Pick<Http2ClientStream, "id">,
	code: number,
	origin: ResetOrigin,
): boolean {
	return (
		(origin === "peer" && code === errorCode.refusedStream) || (origin === "connection" && id === 0)
	);
}
