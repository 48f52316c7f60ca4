import type { ClientHttp2Session } from "node:http2";
import { connect as connectHttp2 } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { Backoff, type Clock, type Random, sleep } from "@plinth/runtime";
import type { ConnectionOptions } from "../options.ts";
import type { KeepAliveOptions } from "./keep-alive.ts";
import { Session, type SessionOwner } from "./session.ts";
import { connectionError, lostConnection } from "./session-errors.ts";

/** The delays after failed attempts to connect. */
const delays = { baseMs: 10, maxMs: 1_000 };

const defaultConnectTimeoutMs = 20_000;

/** What the owner of a connection may set in addition. */
export interface ConnectionSettings {
	/** The time after which an attempt to connect has failed, in milliseconds; 20 seconds by default. */
	readonly connectTimeoutMs?: number;
	/** The bytes of all calls of a session that the server may send ahead; that of HTTP/2, 64 KiB, by default. */
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
	readonly #nodeOptions: ConnectionOptions["nodeOptions"];
	readonly #clock: Clock;
	readonly #backoff: Backoff;
	readonly #settings: ConnectionSettings;
	readonly #sessions = new Set<Session>();
	#keepAlive: KeepAliveOptions;
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
		this.#nodeOptions = options.nodeOptions;
		this.#clock = clock;
		this.#backoff = new Backoff({ ...delays, clock, random });
		this.#keepAlive = {
			pingIntervalMs: options.pingIntervalMs ?? Number.POSITIVE_INFINITY,
			pingTimeoutMs: options.pingTimeoutMs ?? 15_000,
			pingIdleConnection: options.pingIdleConnection ?? false,
			idleConnectionTimeoutMs: options.idleConnectionTimeoutMs ?? 15 * 60_000,
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
		const pingIntervalMs = this.#keepAlive.pingIntervalMs * 2;
		this.#keepAlive = { ...this.#keepAlive, pingIntervalMs };
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

	/** Takes over the session as soon as it is connected, before any other of its events. */
	#adopt(connected: ClientHttp2Session): Session {
		const session = new Session(connected, this.#authority, this, this.#clock, this.#keepAlive);
		this.#sessions.add(session);
		this.#session = session;
		return session;
	}

	#connect(signal: AbortSignal): Promise<Session> {
		const { connectTimeoutMs = defaultConnectTimeoutMs, sessionWindowBytes } = this.#settings;
		return new Promise((resolve, reject) => {
			const session = connectHttp2(this.#authority, {
				...this.#nodeOptions,
				settings: { enablePush: false, ...this.#nodeOptions?.settings },
			});
			const unregister = () => {
				timer.cancel();
				session.off("connect", onConnect);
				session.off("close", onClose);
				signal.removeEventListener("abort", onAbort);
			};
			const fail = (error: ConnectError) => {
				unregister();
				// The listener for errors stays: more of them may follow.
				session.destroy();
				reject(error);
			};
			const onConnect = () => {
				// A session that is destroyed while connecting emits this too, followed by the reason.
				if (!session.destroyed) {
					unregister();
					session.off("error", onError);
					if (sessionWindowBytes !== undefined) {
						session.setLocalWindowSize(sessionWindowBytes);
					}
					resolve(this.#adopt(session));
				}
			};
			const onError = (error: Error) => fail(connectionError(this.#authority, error, false));
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
			session.once("connect", onConnect);
			session.on("error", onError);
			session.once("close", onClose);
			signal.addEventListener("abort", onAbort, { once: true });
		});
	}
}
