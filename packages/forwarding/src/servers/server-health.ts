import { ConnectError } from "@connectrpc/connect";
import { Backoff, type Clock, type Random, type Timer } from "@plinth/runtime";

/**
 * What is known about a server: nothing, and it gets no calls before a check (`new`); nothing, or not much any more; that it is
 * ready; or that it can't be used.
 */
export type HealthState = "new" | "unknown" | "healthy" | "ejected";

/** Whether a server in this state gets calls. */
export function getsCalls(state: HealthState): boolean {
	return state === "unknown" || state === "healthy";
}

/** Notifications about the health of a server. */
export interface HealthEvents {
	/** The server gets no calls until a check succeeds. Called once for each time. */
	ejected(reason: string): void;
	/** A check has found that the server is ready: the first one, or after it was ejected or has lost a connection. */
	returned(): void;
}

/** How servers are checked. All times are in milliseconds. */
export interface HealthOptions {
	/** The time between checks of a healthy server. */
	readonly checkIntervalMs: number;
	/** A check without a result after this time is late, and two of them in a row eject the server. */
	readonly checkTimeoutMs: number;
	/** The pauses between checks of an ejected server: each is twice the one before. */
	readonly firstPauseMs: number;
	readonly longestPauseMs: number;
	/** After this time without an ejection, the next pause is the first one again. */
	readonly forgivenAfterMs: number;
}

export const defaultHealthOptions: HealthOptions = {
	checkIntervalMs: 2_000,
	checkTimeoutMs: 3_000,
	firstPauseMs: 500,
	longestPauseMs: 15_000,
	forgivenAfterMs: 30_000,
};

/** No check begins earlier after the last one, whatever calls report. In milliseconds. */
const shortestPauseMs = 500;

/** So many checks in a row that take too long eject a server. */
const lateInRow = 2;

/**
 * The health of one server, by active checks and by what calls report:
 *
 * ```
 *          a check succeeds               a check or connection fails
 * unknown ─────────────────▶ healthy ────────────────────────────────────▶ ejected
 *    ▲                        │  ▲                                            │
 *    └── connection lost, ────┘  └────── a check succeeds, after a pause ─────┘
 *        GOAWAY,
 *        a late check
 * ```
 *
 * An `unknown` server is ejected like a healthy one. A server that is `new` becomes healthy or ejected by its first check.
 *
 * A response of Unavailable changes no state: the server may be stopping, or one method may be unable to reach what it needs
 * while all others work. A check follows soon, which fails if the server stops, and until it ends, other servers are
 * preferred.
 *
 * Invariant: until `close`, either a check runs or the timer for the next one is set.
 */
export class ServerHealth {
	readonly #options: HealthOptions;
	readonly #clock: Clock;
	readonly #events: HealthEvents;
	readonly #check: (signal: AbortSignal) => Promise<void>;
	readonly #pauses: Backoff;
	readonly #closing = new AbortController();
	#state: HealthState;
	#lastError = "it was not checked yet";
	/** Whether the server was reported as returned, and not as ejected since. */
	#isReported = false;
	/** Whether it has responded with Unavailable since the last check. */
	#isInDoubt = false;
	#lateInRow = 0;
	#healthySinceMs = 0;
	#lastCheckMs = Number.NEGATIVE_INFINITY;
	#isChecking = false;
	#timer: Timer | undefined;

	/**
	 * @param check - resolves if the server is ready; rejects with the reason if not.
	 * @param state - that it begins with.
	 */
	constructor(
		options: HealthOptions,
		{ clock, random }: { readonly clock: Clock; readonly random: Random },
		events: HealthEvents,
		check: (signal: AbortSignal) => Promise<void>,
		state: "new" | "unknown" = "unknown",
	) {
		this.#state = state;
		this.#options = options;
		this.#clock = clock;
		this.#events = events;
		this.#check = check;
		const { firstPauseMs, longestPauseMs } = options;
		this.#pauses = new Backoff({ baseMs: firstPauseMs, maxMs: longestPauseMs, clock, random });
	}

	get state(): HealthState {
		return this.#state;
	}

	/** Whether it gets calls rather than servers that are not preferred. */
	get isPreferred(): boolean {
		return this.#state === "healthy" && !this.#isInDoubt;
	}

	/** The last thing that went wrong. */
	get lastError(): string {
		return this.#lastError;
	}

	/** Begins to check the server. */
	start(): void {
		void this.#run();
	}

	close(): void {
		this.#closing.abort();
		this.#timer?.cancel();
	}

	/** A call could not connect. */
	connectionFailed(reason: string): void {
		this.#eject(reason);
	}

	/** A call has lost its connection. The server may be well: a check decides, and other servers are preferred until then. */
	connectionLost(reason: string): void {
		this.#suspect(reason);
	}

	/** The server accepts no new calls on a connection: it stops, or the connection was idle. */
	goawayReceived(): void {
		this.#suspect("it has sent GOAWAY");
	}

	/** The server has responded with Unavailable. */
	wasUnavailable(): void {
		if (getsCalls(this.#state)) {
			this.#lastError = "it responded with Unavailable";
			this.#isInDoubt = true;
			this.checkSoon();
		}
	}

	/** Checks the server without waiting for the end of its pause, at most twice a second. */
	checkSoon(): void {
		if (!this.#isChecking) {
			this.#checkIn(Math.max(0, this.#lastCheckMs + shortestPauseMs - this.#clock.monotonic()));
		}
	}

	/** Other servers are preferred until a check has succeeded. */
	#suspect(reason: string): void {
		this.#lastError = reason;
		if (this.#state === "healthy") {
			this.#state = "unknown";
		}
		if (this.#state === "unknown") {
			this.checkSoon();
		}
	}

	#checkIn(delayMs: number): void {
		this.#timer?.cancel();
		if (!this.#closing.signal.aborted) {
			this.#timer = this.#clock.setTimer(delayMs, () => void this.#run());
		}
	}

	async #run(): Promise<void> {
		this.#timer?.cancel();
		this.#isChecking = true;
		const { result, isLate } = await this.#result();
		this.#isChecking = false;
		this.#isInDoubt = false;
		this.#lastCheckMs = this.#clock.monotonic();
		if (this.#closing.signal.aborted) {
			return;
		}
		this.#lateInRow = isLate ? this.#lateInRow + 1 : 0;
		if (result === "ready") {
			this.#succeeded();
		} else if (isLate && this.#lateInRow < lateInRow && getsCalls(this.#state)) {
			// Slow is not down: it may be the only server.
			this.#suspect(result);
		} else if (this.#state === "ejected") {
			this.#lastError = result;
			this.#checkIn(this.#pauses.nextDelayMs());
		} else {
			this.#eject(result);
		}
	}

	/** The result of one check: `ready`, or why not, and whether it took too long. */
	async #result(): Promise<{ readonly result: string; readonly isLate: boolean }> {
		const { checkTimeoutMs } = this.#options;
		const timeout = new AbortController();
		const signal = AbortSignal.any([this.#closing.signal, timeout.signal]);
		const timer = this.#clock.setTimer(checkTimeoutMs, () =>
			timeout.abort(new Error(`it did not respond to a health check in ${checkTimeoutMs} ms`)),
		);
		try {
			await this.#check(signal);
			return { result: "ready", isLate: false };
		} catch (failure) {
			return { result: reasonOf(failure), isLate: timeout.signal.aborted };
		} finally {
			timer.cancel();
		}
	}

	#succeeded(): void {
		const nowMs = this.#clock.monotonic();
		this.#state = "healthy";
		if (!this.#isReported) {
			this.#isReported = true;
			this.#healthySinceMs = nowMs;
			// Calls may be sent to it at once.
			this.#events.returned();
		} else if (nowMs - this.#healthySinceMs >= this.#options.forgivenAfterMs) {
			this.#pauses.reset();
		}
		this.#checkIn(this.#options.checkIntervalMs);
	}

	#eject(reason: string): void {
		this.#lastError = reason;
		if (this.#state === "ejected" || this.#closing.signal.aborted) {
			return;
		}
		this.#state = "ejected";
		this.#isReported = false;
		this.#events.ejected(reason);
		if (!this.#isChecking) {
			this.#checkIn(this.#pauses.nextDelayMs());
		}
	}
}

/** The message of an error, without its code. */
export function reasonOf(failure: unknown): string {
	if (failure instanceof ConnectError) {
		return failure.rawMessage;
	}
	return failure instanceof Error ? failure.message : String(failure);
}
