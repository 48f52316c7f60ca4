import { type Clock, type Fence, type LeaseHold, type Scheduler, sleep } from "@plinth/runtime";
import type { TestLeases } from "./test-leases.ts";

/** The options of the engine. */
export interface TimedLeasesOptions {
	/** The engine's clock. */
	readonly clock: Clock;
	/** Delivers messages between the engine and its clients. */
	readonly scheduler: Scheduler;
	/** The duration of a lease on the engine's clock, in milliseconds; 10 s by default. */
	readonly ttlMs?: number;
	/**
	 * The fraction of that time that a holder relies on, by its own clock, starting when it sent the request:
	 * less than 1, by as much as the rates of clocks may differ; 0.8 by default.
	 */
	readonly safeFraction?: number;
}

interface Grant {
	readonly token: number;
	/** On the engine's clock. */
	untilMs: number;
}

/**
 * Leases as storage engines grant them: for a limited time, to be renewed. The engine and each client use
 * their own clocks; a client that could not renew a lease gives up its hold before the engine grants it to
 * another, as long as the rates of their clocks differ by no more than the fraction that the client does not
 * rely on.
 */
export class TimedLeases {
	readonly #clock: Clock;
	readonly #scheduler: Scheduler;
	readonly #ttlMs: number;
	readonly #safeFraction: number;
	readonly #grants = new Map<string, Grant>();
	readonly #lastTokens = new Map<string, number>();
	readonly #cutOff = new Set<Clock>();

	constructor(options: TimedLeasesOptions) {
		const { clock, scheduler, ttlMs = 10_000, safeFraction = 0.8 } = options;
		this.#clock = clock;
		this.#scheduler = scheduler;
		this.#ttlMs = ttlMs;
		this.#safeFraction = safeFraction;
	}

	/** The leases for the client with that clock. */
	client(clock: Clock): TestLeases {
		return {
			acquire: (name, signal) => this.#acquire(name, clock, signal),
			held: (prefix, signal) => this.#held(prefix, clock, signal),
			isCurrent: (fence) => this.#isCurrent(fence),
			revoke: () => this.cutOff(clock),
		};
	}

	/** Drops all messages of the client with that clock, until it is reconnected. */
	cutOff(clock: Clock): void {
		this.#cutOff.add(clock);
	}

	/** Delivers the messages of that client again. */
	reconnect(clock: Clock): void {
		this.#cutOff.delete(clock);
	}

	/** Delivers the messages of all clients again. */
	reconnectAll(): void {
		this.#cutOff.clear();
	}

	#isCurrent({ lease, token }: Fence): boolean {
		return this.#lastTokens.get(lease)?.toString() === token;
	}

	async #acquire(name: string, clock: Clock, signal: AbortSignal): Promise<LeaseHold> {
		for (;;) {
			signal.throwIfAborted();
			const askedMs = clock.monotonic();
			const grant = await this.#send(clock, () => this.#grant(name));
			if (signal.aborted && grant !== undefined) {
				await this.#send(clock, () => this.#release(name, grant));
			}
			signal.throwIfAborted();
			if (grant !== undefined) {
				return this.#hold(name, clock, grant, askedMs);
			}
			await sleep(clock, this.#ttlMs / 10, signal);
		}
	}

	async *#held(
		prefix: string,
		clock: Clock,
		signal: AbortSignal,
	): AsyncGenerator<ReadonlySet<string>, never> {
		let last: string | undefined;
		for (;;) {
			signal.throwIfAborted();
			const names = await this.#send(clock, () => this.#granted(prefix));
			if (names !== undefined && names.join() !== last) {
				last = names.join();
				yield new Set(names);
			}
			await sleep(clock, this.#ttlMs / 10, signal);
		}
	}

	#granted(prefix: string): readonly string[] {
		const nowMs = this.#clock.monotonic();
		return [...this.#grants]
			.filter(([name, { untilMs }]) => nowMs < untilMs && name.startsWith(prefix))
			.map(([name]) => name)
			.sort();
	}

	#hold(name: string, clock: Clock, grant: Grant, askedMs: number): LeaseHold {
		const ended = new AbortController();
		const safeMs = this.#ttlMs * this.#safeFraction;
		const end = (reason: Error) => {
			expiry.cancel();
			ended.abort(reason);
		};
		const expire = () => end(new Error(`lease ${name} could not be renewed`));
		let expiry = clock.setTimer(Number.POSITIVE_INFINITY, expire);
		/** Extends the hold, counted from when the request was sent; the response may be too late for that. */
		const liveFrom = (sentMs: number) => {
			expiry.cancel();
			const leftMs = sentMs + safeMs - clock.monotonic();
			if (leftMs <= 0) {
				expire();
			} else {
				expiry = clock.setTimer(leftMs, expire);
			}
		};
		liveFrom(askedMs);
		const renew = async () => {
			while (!ended.signal.aborted) {
				await sleep(clock, this.#ttlMs / 5, ended.signal);
				const sentMs = clock.monotonic();
				const renewed = await this.#send(clock, () => this.#renew(name, grant));
				if (renewed === true && !ended.signal.aborted) {
					liveFrom(sentMs);
				}
			}
		};
		renew().catch(() => {});
		return {
			fence: { lease: name, token: grant.token.toString() },
			signal: ended.signal,
			release: async () => {
				end(new Error(`lease ${name} was released`));
				await this.#send(clock, () => this.#release(name, grant));
			},
		};
	}

	#grant(name: string): Grant | undefined {
		const nowMs = this.#clock.monotonic();
		const current = this.#grants.get(name);
		if (current !== undefined && nowMs < current.untilMs) {
			return undefined;
		}
		const token = (this.#lastTokens.get(name) ?? 0) + 1;
		const grant = { token, untilMs: nowMs + this.#ttlMs };
		this.#lastTokens.set(name, token);
		this.#grants.set(name, grant);
		return grant;
	}

	#renew(name: string, grant: Grant): boolean {
		const nowMs = this.#clock.monotonic();
		if (this.#grants.get(name) !== grant || nowMs >= grant.untilMs) {
			return false;
		}
		grant.untilMs = nowMs + this.#ttlMs;
		return true;
	}

	#release(name: string, grant: Grant): void {
		if (this.#grants.get(name) === grant) {
			this.#grants.delete(name);
		}
	}

	/** Sends a message and receives the response; `undefined` if either is lost. */
	async #send<Response>(clock: Clock, respond: () => Response): Promise<Response | undefined> {
		await this.#hop();
		if (this.#cutOff.has(clock)) {
			return undefined;
		}
		const response = respond();
		await this.#hop();
		return this.#cutOff.has(clock) ? undefined : response;
	}

	#hop(): Promise<void> {
		return new Promise((resolve) => this.#scheduler.schedule(resolve));
	}
}
