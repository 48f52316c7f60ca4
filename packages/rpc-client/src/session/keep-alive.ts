import type { Http2ClientConnection } from "@plinth/http2";
import type { Clock, Timer } from "@plinth/runtime";

/** In milliseconds. */
export interface KeepAliveOptions {
	readonly pingIntervalMs: number;
	readonly pingTimeoutMs: number;
	readonly pingIdleConnection: boolean;
	readonly idleConnectionTimeoutMs: number;
}

/** The notifications of a `KeepAlive` to its session. */
export interface KeepAliveEvents {
	openCalls(): number;
	/** The server has not responded to a ping. */
	dead(): void;
	/** There was no call during the idle timeout. */
	idle(): void;
}

/**
 * Pings a silent session, and ends an unused one. Bytes and calls only record the time: a single timer checks,
 * when it fires, whether a ping or the end is due, and is set again if not.
 */
export class KeepAlive {
	readonly #connection: Pick<Http2ClientConnection, "ping">;
	readonly #clock: Clock;
	readonly #options: KeepAliveOptions;
	readonly #events: KeepAliveEvents;
	/** When the server was last known to be alive, and when the last call ended. */
	#aliveAtMs: number;
	#unusedSinceMs: number;
	#pingTimer: Timer | undefined;
	#idleTimer: Timer | undefined;
	#verifying: Promise<boolean> | undefined;
	#isStopped = false;

	constructor(
		connection: Pick<Http2ClientConnection, "ping">,
		clock: Clock,
		options: KeepAliveOptions,
		events: KeepAliveEvents,
	) {
		this.#connection = connection;
		this.#clock = clock;
		this.#options = options;
		this.#events = events;
		this.#aliveAtMs = clock.monotonic();
		this.#unusedSinceMs = this.#aliveAtMs;
		this.used();
		this.unused();
	}

	get isStale(): boolean {
		const { pingIntervalMs } = this.#options;
		return (
			pingIntervalMs !== Number.POSITIVE_INFINITY &&
			this.#clock.monotonic() - this.#aliveAtMs > pingIntervalMs
		);
	}

	arrived(): void {
		if (this.#options.pingIntervalMs !== Number.POSITIVE_INFINITY) {
			this.#aliveAtMs = this.#clock.monotonic();
		}
	}

	/** The first call was made. */
	used(): void {
		if (
			this.#pingTimer === undefined &&
			this.#options.pingIntervalMs !== Number.POSITIVE_INFINITY
		) {
			this.#pingIn(this.#options.pingIntervalMs);
		}
	}

	/** The last call has ended. */
	unused(): void {
		if (this.#options.idleConnectionTimeoutMs === Number.POSITIVE_INFINITY) {
			return;
		}
		this.#unusedSinceMs = this.#clock.monotonic();
		if (this.#idleTimer === undefined) {
			this.#checkIdleIn(this.#options.idleConnectionTimeoutMs);
		}
	}

	stop(): void {
		this.#isStopped = true;
		this.#pingTimer?.cancel();
		this.#idleTimer?.cancel();
	}

	/** Pings the server; concurrent callers share a ping. Resolves with false if the session is dead. */
	verify(): Promise<boolean> {
		this.#verifying ??= this.#ping().finally(() => {
			this.#verifying = undefined;
		});
		return this.#verifying;
	}

	#pingIn(delayMs: number): void {
		if (!this.#isStopped) {
			// A call may have set it during a ping.
			this.#pingTimer?.cancel();
			this.#pingTimer = this.#clock.setTimer(delayMs, () => void this.#pingIfSilent());
		}
	}

	async #pingIfSilent(): Promise<void> {
		this.#pingTimer = undefined;
		if (this.#events.openCalls() === 0 && !this.#options.pingIdleConnection) {
			return;
		}
		const { pingIntervalMs } = this.#options;
		const restMs = this.#aliveAtMs + pingIntervalMs - this.#clock.monotonic();
		if (restMs > 0) {
			this.#pingIn(restMs);
		} else if (await this.verify()) {
			this.#pingIn(pingIntervalMs);
		}
	}

	async #ping(): Promise<boolean> {
		const timer = this.#clock.setTimer(this.#options.pingTimeoutMs, () => this.#events.dead());
		try {
			await this.#connection.ping();
			this.#aliveAtMs = this.#clock.monotonic();
			return true;
		} catch {
			// The session has ended.
			return false;
		} finally {
			timer.cancel();
		}
	}

	#checkIdleIn(delayMs: number): void {
		if (!this.#isStopped) {
			this.#idleTimer = this.#clock.setTimer(delayMs, () => this.#endIfIdle());
		}
	}

	#endIfIdle(): void {
		this.#idleTimer = undefined;
		if (this.#events.openCalls() > 0) {
			return;
		}
		const { idleConnectionTimeoutMs } = this.#options;
		const restMs = this.#unusedSinceMs + idleConnectionTimeoutMs - this.#clock.monotonic();
		if (restMs > 0) {
			this.#checkIdleIn(restMs);
		} else {
			this.#events.idle();
		}
	}
}
