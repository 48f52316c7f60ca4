import {
	type ClientHttp2Session,
	type ClientHttp2Stream,
	type ClientSessionRequestOptions,
	constants,
	type OutgoingHttpHeaders,
} from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Clock } from "@plinth/runtime";
import { nameOf } from "../call/stream-errors.ts";
import { KeepAlive, type KeepAliveOptions } from "./keep-alive.ts";
import { connectionError, isReset, lostConnection } from "./session-errors.ts";

/** Stream identifiers are odd numbers below 2³¹: a new session is opened before they run out. */
const maxCalls = 1_000_000_000;

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
	readonly #session: ClientHttp2Session;
	readonly #owner: SessionOwner;
	readonly #authority: string;
	readonly #keepAlive: KeepAlive;
	/** The number of open calls, and of all calls that were made. */
	#open = 0;
	#made = 0;
	#speaksHttp2 = false;
	#isDraining = false;
	/** The last stream that the server has processed or may process, once it has said so. */
	#lastStreamId = Number.POSITIVE_INFINITY;

	/** @param session - must be connected. */
	constructor(
		session: ClientHttp2Session,
		authority: string,
		owner: SessionOwner,
		clock: Clock,
		options: KeepAliveOptions,
	) {
		this.#session = session;
		this.#authority = authority;
		this.#owner = owner;
		this.#keepAlive = new KeepAlive(session, clock, options, {
			openCalls: () => this.#open,
			dead: () =>
				this.#end(() => lostConnection(authority, "did not respond to a ping", "ETIMEDOUT")),
			idle: () => this.#drain(),
		});
		// Only calls keep the process alive.
		session.unref();
		session.once("remoteSettings", () => {
			this.#speaksHttp2 = true;
			owner.settingsReceived(this);
		});
		session.on("goaway", (code, lastStreamId, data) => this.#onGoaway(code, lastStreamId, data));
		session.on("error", (error) => this.#onError(error));
		session.once("close", () => this.#onClose());
		session.socket.once("close", () => this.#onClose());
	}

	/** Whether it accepts new calls. */
	get isReady(): boolean {
		return !(this.#isDraining || this.#session.closed || this.#session.destroyed);
	}

	get speaksHttp2(): boolean {
		return this.#speaksHttp2;
	}

	/** Whether it was unused for so long that it must be pinged before a call. */
	get needsVerification(): boolean {
		return this.#keepAlive.isStale;
	}

	/** Calls that the server processes at the same time; more wait on this side. Infinite until it has sent its settings. */
	get maxConcurrentCalls(): number {
		return this.#speaksHttp2
			? (this.#session.remoteSettings.maxConcurrentStreams ?? Number.POSITIVE_INFINITY)
			: Number.POSITIVE_INFINITY;
	}

	/**
	 * Whether the server has guaranteed that it did not process the call of a closed stream: it has refused the stream, or
	 * excluded it with GOAWAY (RFC 9113, section 8.7).
	 */
	hasExcluded({ id, rstCode }: Pick<ClientHttp2Stream, "id" | "rstCode">): boolean {
		return (
			rstCode === constants.NGHTTP2_REFUSED_STREAM || (id !== undefined && id > this.#lastStreamId)
		);
	}

	/** Makes a call. @throws Error if the session has just ended, or if a header is invalid. */
	open(headers: OutgoingHttpHeaders, options?: ClientSessionRequestOptions): ClientHttp2Stream {
		const stream = this.#session.request(headers, options);
		this.#made += 1;
		if (this.#made === maxCalls) {
			this.#isDraining = true;
		}
		this.#open += 1;
		if (this.#open === 1) {
			this.#session.ref();
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
		this.#session.unref();
		if (this.#isDraining) {
			this.#session.close();
			return;
		}
		this.#keepAlive.unused();
	}

	/**
	 * The reason why a stream closed, if it closed because the session ended.
	 *
	 * @param error - of the stream, whose event may precede that of the session.
	 */
	failureOf(error: Error | undefined): ConnectError | undefined {
		if (this.#failure === undefined && this.#session.destroyed && error !== undefined) {
			return isReset(error)
				? undefined
				: connectionError(this.#authority, error, this.#speaksHttp2);
		}
		return this.#failure?.();
	}

	/** Bytes have arrived. */
	arrived(): void {
		this.#keepAlive.arrived();
	}

	/** Pings the server. Resolves when it has responded, or with false when the session is dead. */
	async verify(): Promise<boolean> {
		// A call waits for it.
		this.#session.ref();
		try {
			return await this.#keepAlive.verify();
		} finally {
			if (this.#open === 0) {
				this.#session.unref();
			}
		}
	}

	/** Ends the session. Its calls fail with what `reason` returns. */
	close(reason: () => ConnectError): void {
		this.#end(reason);
	}

	#onGoaway(code: number, lastStreamId: number, data: Buffer | undefined): void {
		this.#isDraining = true;
		this.#lastStreamId = Math.min(this.#lastStreamId, lastStreamId);
		this.#owner.goawayReceived();
		if (code === constants.NGHTTP2_NO_ERROR) {
			return;
		}
		// The session is destroyed next, by the library.
		const isCalm = code === constants.NGHTTP2_ENHANCE_YOUR_CALM;
		const text = data === undefined || data.length === 0 ? "" : `: ${data.toString("latin1")}`;
		this.#failure ??= () =>
			new ConnectError(
				`${this.#authority} closed the connection with error code ${nameOf(code)}${text}`,
				isCalm ? Code.ResourceExhausted : Code.Unavailable,
			);
		if (isCalm && text === ": too_many_pings") {
			this.#owner.tooManyPings();
		}
	}

	#onError(error: Error): void {
		this.#failure ??= () => connectionError(this.#authority, error, this.#speaksHttp2);
		this.#owner.ended(this);
	}

	#onClose(): void {
		this.#failure ??= () =>
			lostConnection(
				this.#authority,
				this.#speaksHttp2
					? "closed the connection"
					: "closed the connection: does it speak HTTP/2?",
				"ECONNRESET",
			);
		this.#keepAlive.stop();
		this.#owner.ended(this);
	}

	/** Unused for too long. */
	#drain(): void {
		this.#isDraining = true;
		this.#session.close();
	}

	#end(reason: () => ConnectError): void {
		this.#failure ??= reason;
		this.#isDraining = true;
		this.#keepAlive.stop();
		// The socket stays open until the server has received what was written, which may never happen.
		this.#session.unref();
		this.#session.destroy(undefined, constants.NGHTTP2_CANCEL);
		this.#owner.ended(this);
	}
}
