import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { Code, ConnectError } from "@connectrpc/connect";
import { Backoff, type Clock, type Random, sleep } from "@plinth/runtime";
import type { ConnectionOptions } from "../options.ts";
import { Session, type SessionOptions, type SessionOwner } from "./session.ts";
import { connectError, lostConnection, protocolError } from "./session-errors.ts";

/** The delays after failed attempts to connect. */
const delays = { baseMs: 10, maxMs: 1_000 };

const defaultConnectTimeoutMs = 20_000;

/** What HTTP/2 begins with. */
const defaultCallWindowBytes = 65_535;

/** Enough for a hundred slow readers: those of other calls must not wait for them. */
const defaultSessionWindowBytes = 8 * 1024 * 1024;

/** What the owner of a connection may set in addition. */
export interface ConnectionSettings {
	/** The time after which an attempt to connect has failed, in milliseconds; 20 seconds by default. */
	readonly connectTimeoutMs?: number;
	/** The bytes of a call that the server may send ahead of its reader; 64 KiB by default. */
	readonly callWindowBytes?: number;
	/** The bytes of all calls of a session that the server may send ahead; 8 MiB by default. */
	readonly sessionWindowBytes?: number;
	/** Called when the server accepts no new calls on a session, because it stops or the session was idle. */
	readonly onGoaway?: () => void;
}

/**
 * The connection to one server: one session that accepts calls, opened when there is a call and replaced when
 * it has ended, and the sessions that are draining.
 *
 * Attempts to connect are shared: calls that find no session wait for the current attempt. After a failed
 * attempt the next one begins after a delay, so that a server that is down receives one attempt a second
 * rather than one per call; every call waits for an attempt that began after it.
 */
export class Connection implements SessionOwner {
	readonly #authority: string;
	readonly #url: URL;
	readonly #tls: ConnectionOptions["nodeOptions"];
	readonly #clock: Clock;
	readonly #backoff: Backoff;
	readonly #settings: ConnectionSettings;
	readonly #sessions = new Set<Session>();
	#sessionOptions: SessionOptions;
	#session: Session | undefined;
	#opening: Promise<Session> | undefined;
	/** No attempt begins before this time. */
	#retryAtMs = Number.NEGATIVE_INFINITY;
	readonly #closing = new AbortController();
	/** Creates the error with which calls fail once it is closed. */
	#closed: (() => ConnectError) | undefined;

	/** @param authority - scheme, host and port. */
	constructor(
		authority: string,
		options: ConnectionOptions,
		clock: Clock,
		random: Random,
		settings: ConnectionSettings = {},
	) {
		this.#authority = authority;
		this.#settings = settings;
		this.#url = new URL(authority);
		this.#tls = options.nodeOptions;
		this.#clock = clock;
		this.#backoff = new Backoff({ ...delays, clock, random });
		this.#sessionOptions = {
			pingIntervalMs: options.pingIntervalMs ?? Number.POSITIVE_INFINITY,
			pingTimeoutMs: options.pingTimeoutMs ?? 15_000,
			pingIdleConnection: options.pingIdleConnection ?? false,
			idleConnectionTimeoutMs: options.idleConnectionTimeoutMs ?? 15 * 60_000,
			connectTimeoutMs: settings.connectTimeoutMs ?? defaultConnectTimeoutMs,
			callWindowBytes: settings.callWindowBytes ?? defaultCallWindowBytes,
			sessionWindowBytes: settings.sessionWindowBytes ?? defaultSessionWindowBytes,
		};
	}

	/** The session for a call. `undefined` if there is none, or if it has to be verified first: see `ready`. */
	get current(): Session | undefined {
		const session = this.#session;
		return session?.isReady && !session.needsVerification ? session : undefined;
	}

	/**
	 * A session that accepts calls.
	 *
	 * @throws ConnectError Unavailable if the server can't be reached.
	 */
	ready(): Promise<Session> {
		if (this.#opening === undefined) {
			const opening = this.#open().finally(() => {
				this.#opening = undefined;
			});
			this.#opening = opening;
		}
		return this.#opening;
	}

	/**
	 * Ends all sessions. Their calls, and later ones, fail with what `reason` returns. An error is created only for a call:
	 * the first `ConnectError` of a process loads much code of Node.js, for its `Headers`.
	 */
	close(reason: () => ConnectError): void {
		this.#closed ??= reason;
		if (this.#opening !== undefined) {
			this.#closing.abort(reason());
		}
		for (const session of this.#sessions) {
			session.close(reason);
		}
	}

	settingsReceived(): void {
		this.#backoff.reset();
	}

	ended(session: Session): void {
		if (!this.#sessions.delete(session)) {
			return;
		}
		if (!session.speaksHttp2) {
			this.#delayNext();
		}
		if (this.#session === session) {
			this.#session = undefined;
		}
	}

	tooManyPings(): void {
		const pingIntervalMs = this.#sessionOptions.pingIntervalMs * 2;
		this.#sessionOptions = { ...this.#sessionOptions, pingIntervalMs };
	}

	goawayReceived(): void {
		this.#settings.onGoaway?.();
	}

	async #open(): Promise<Session> {
		if (this.#closed !== undefined) {
			throw this.#closed();
		}
		const { signal } = this.#closing;
		const former = this.#session;
		if (former?.isReady && (!former.needsVerification || (await former.verify()))) {
			return former;
		}
		await this.#delay(signal);
		// The connection may have been closed in the meantime.
		signal.throwIfAborted();
		try {
			return await this.#connect(signal);
		} catch (thrown) {
			this.#delayNext();
			throw thrown;
		}
	}

	#delayNext(): void {
		this.#retryAtMs = this.#clock.monotonic() + this.#backoff.nextDelayMs();
	}

	async #delay(signal: AbortSignal): Promise<void> {
		const delayMs = this.#retryAtMs - this.#clock.monotonic();
		if (delayMs > 0) {
			// Timers of a clock don't keep the process alive, but calls that wait do.
			const alive = setInterval(() => {}, 60_000);
			try {
				await sleep(this.#clock, delayMs, signal);
			} finally {
				clearInterval(alive);
			}
		}
	}

	/** Takes over the socket as soon as it is connected, before any other of its events. */
	#adopt(socket: Socket): Session {
		const session = new Session(socket, this.#authority, this, this.#clock, this.#sessionOptions);
		this.#sessions.add(session);
		this.#session = session;
		return session;
	}

	#connect(signal: AbortSignal): Promise<Session> {
		const { connectTimeoutMs } = this.#sessionOptions;
		const isSecure = this.#url.protocol === "https:";
		return new Promise((resolve, reject) => {
			const socket = isSecure ? this.#openTls() : this.#openTcp();
			const connected = isSecure ? "secureConnect" : "connect";
			const unregister = () => {
				timer.cancel();
				socket.off(connected, onConnect);
				socket.off("close", onClose);
				signal.removeEventListener("abort", onAbort);
			};
			const fail = (error: ConnectError) => {
				unregister();
				// The listener for errors stays: more of them may follow.
				socket.destroy();
				reject(error);
			};
			const onConnect = () => {
				if (isSecure && (socket as TLSSocket).alpnProtocol !== "h2") {
					fail(protocolError(this.#authority, "TLS has not agreed on it", false));
					return;
				}
				unregister();
				socket.off("error", onError);
				resolve(this.#adopt(socket));
			};
			const onError = (error: Error) => fail(connectError(this.#authority, error));
			const onClose = () =>
				fail(lostConnection(this.#authority, "closed the connection", "ECONNRESET"));
			const onAbort = () => fail(ConnectError.from(signal.reason, Code.Unavailable));
			const timer = this.#clock.setTimer(connectTimeoutMs, () =>
				fail(
					lostConnection(
						this.#authority,
						`could not be reached in ${connectTimeoutMs} ms`,
						"ETIMEDOUT",
					),
				),
			);
			socket.once(connected, onConnect);
			socket.on("error", onError);
			socket.once("close", onClose);
			signal.addEventListener("abort", onAbort, { once: true });
		});
	}

	#openTcp(): Socket {
		return connectTcp(this.#address(80));
	}

	#openTls(): TLSSocket {
		const address = this.#address(443);
		// An address is no name that a server could choose its certificate by.
		const servername = isIP(address.host) === 0 ? address.host : "";
		return connectTls({ servername, ...this.#tls, ...address, ALPNProtocols: ["h2"] });
	}

	#address(defaultPort: number): { readonly host: string; readonly port: number } {
		const { hostname, port } = this.#url;
		// Those of IPv6 are in brackets.
		const host = hostname.replace(/^\[(.*)\]$/, "$1");
		return { host, port: port === "" ? defaultPort : Number(port) };
	}
}
