import type { Clock, Timer } from "@plinth/runtime";

/** What turns may take in one round of the event loop before others wait, in milliseconds. */
const roundMs = 5;

/** A round that lasts longer, and in which turns took less than they may, is over, in milliseconds. */
const longestRoundMs = 20;

/** What a turn is expected to take at least, and with the bytes of its request, in milliseconds. */
const turnMs = 0.1;
const byteMs = 1 / (20 * 1024);

/** A turn that took longer is slow, in milliseconds. */
const slowMs = 20;

/** The longest pause after a slow turn, in milliseconds. */
const longestPauseMs = 1_000;

/** For how long a slow turn, or a turn of another caller, is remembered, in milliseconds. */
const recentMs = 1_000;

/** Callers that are remembered though they do not wait. */
const remembered = 1_000;

/** Who takes a turn. */
export interface TurnTaker {
	/** Whose time it is: a subject, or a connection where there are no tokens. */
	readonly caller: string | object;
	/** On which of the caller's connections. */
	readonly connection: object;
}

interface Waiter {
	readonly taker: TurnTaker;
	readonly expectedMs: number;
	readonly proceed: () => void;
}

/** Waiters by connection, of which one is next after the other. */
class Queue {
	readonly #connections = new Map<object, Set<Waiter>>();

	add(waiter: Waiter): void {
		const { connection } = waiter.taker;
		const waiters = this.#connections.get(connection);
		if (waiters === undefined) {
			this.#connections.set(connection, new Set([waiter]));
		} else {
			waiters.add(waiter);
		}
	}

	/** Connections with waiters. */
	get connections(): number {
		return this.#connections.size;
	}

	sizeOf(connection: object): number {
		return this.#connections.get(connection)?.size ?? 0;
	}

	/** Returns whether it still waited. */
	remove(waiter: Waiter): boolean {
		const { connection } = waiter.taker;
		const waiters = this.#connections.get(connection);
		if (waiters?.delete(waiter) !== true) {
			return false;
		}
		if (waiters.size === 0) {
			this.#connections.delete(connection);
		}
		return true;
	}

	/** Takes the next out, and moves its connection to the end. */
	shift(): Waiter | undefined {
		for (const [connection, waiters] of this.#connections) {
			for (const waiter of waiters) {
				this.#connections.delete(connection);
				waiters.delete(waiter);
				if (waiters.size > 0) {
					this.#connections.set(connection, waiters);
				}
				return waiter;
			}
		}
		return undefined;
	}
}

/** What one caller has used of the event loop, and what of it waits. */
class Account {
	/** Where its next turn begins, on the scale of `#virtualMs`. */
	nextMs: number;
	slowAtMs = Number.NEGATIVE_INFINITY;
	waiting = 0;
	/** Requests that have arrived and not begun. */
	readonly arrived = new Queue();
	/** Calls that have begun, and come first: they hold more. */
	readonly begun = new Queue();

	constructor(nextMs: number) {
		this.nextMs = nextMs;
	}

	shift(): Waiter | undefined {
		return this.begun.shift() ?? this.arrived.shift();
	}
}

/**
 * Shares the time of the event loop between callers, and that of a caller between its connections. A call
 * takes a turn when its head has arrived, and another one when its request is complete; from there it runs
 * without a break until it is answered or waits for something:
 *
 * - in each round of the event loop turns are taken for a few milliseconds, and those after them wait, so
 *   that sockets and timers are served in between;
 * - of those that wait, the one whose caller has used the least is next;
 * - after a slow turn, callers that had one lately pause for as long as it took, while others call as well:
 *   the others have half of the time at least, however many rounds their calls take.
 *
 * This is start-time fair queueing (Goyal, Vin and Cheng, 1996) with measured costs: a turn begins, on a
 * virtual scale, where its caller's last one ended or where the turn that runs now began, whichever is
 * later, and the earliest is next. Invariant: of two callers that both wait all the time, neither gets ahead
 * of the other by more than one turn of each, however many calls and connections each of them has.
 */
export class EventLoopTurns {
	readonly #clock: Clock;
	readonly #accounts = new Map<string | object, Account>();
	#waiting = 0;
	/** Where the last turn began, on a scale of milliseconds that callers have used. */
	#virtualMs = 0;
	/** Whose turn it is, and since when. */
	#running: Account | undefined;
	#runningSinceMs = 0;
	#roundStartMs = 0;
	/** What the turns of this round are expected to take, and have taken. */
	#expectedMs = 0;
	#tookMs = 0;
	#isScheduled = false;
	/** Whether those that wait take their turns in this round. */
	#isServing = false;
	/** Until when callers with slow turns pause. */
	#slowUntilMs = Number.NEGATIVE_INFINITY;
	/** Ends a pause in which nobody else waits. */
	#pause: Timer | undefined;
	#lastCaller: string | object | undefined;
	/** When a turn was last taken by another caller than the one before. */
	#changedMs = Number.NEGATIVE_INFINITY;

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** How many callers it knows. */
	get callers(): number {
		return this.#accounts.size;
	}

	/** How many wait for a turn. */
	get waiting(): number {
		return this.#waiting;
	}

	/**
	 * Whether as many requests wait as may, and the connection has its share of them. One that has fewer is
	 * never refused for what others do.
	 *
	 * @param perCaller - how many may wait of one caller.
	 * @param inAll - how many may wait of all.
	 */
	isCrowded({ caller, connection }: TurnTaker, perCaller: number, inAll: number): boolean {
		const account = this.#accounts.get(caller);
		if (account === undefined || (account.waiting < perCaller && this.#waiting < inAll)) {
			return false;
		}
		const { arrived } = account;
		return arrived.sizeOf(connection) >= Math.max(1, Math.floor(perCaller / arrived.connections));
	}

	/** Calls `proceed` when it is its turn, which may be at once. */
	run(taker: TurnTaker, proceed: () => void): void {
		const account = this.#accountOf(taker.caller);
		if (this.#startsAtOnce(account, turnMs)) {
			proceed();
		} else {
			this.#wait(account, account.arrived, { taker, expectedMs: turnMs, proceed });
		}
	}

	/**
	 * Resolves when it is the taker's turn, or the signal aborts; `undefined` if it is at once.
	 *
	 * @param bytes - the size of what is to be decoded.
	 */
	take(taker: TurnTaker, bytes: number, signal: AbortSignal): Promise<void> | undefined {
		const account = this.#accountOf(taker.caller);
		const expectedMs = turnMs + bytes * byteMs;
		if (signal.aborted || this.#startsAtOnce(account, expectedMs)) {
			return undefined;
		}
		return new Promise((resolve) => {
			const leave = () => {
				if (account.begun.remove(waiter)) {
					account.waiting -= 1;
					this.#waiting -= 1;
				}
				resolve();
			};
			const proceed = () => {
				signal.removeEventListener("abort", leave);
				resolve();
			};
			const waiter = { taker, expectedMs, proceed };
			this.#wait(account, account.begun, waiter);
			signal.addEventListener("abort", leave, { once: true });
		});
	}

	#startsAtOnce(account: Account, expectedMs: number): boolean {
		const nowMs = this.#clock.monotonic();
		if (nowMs - this.#roundStartMs >= longestRoundMs && this.#tookMs < roundMs) {
			this.#beginRound(nowMs);
		}
		const runningMs = this.#running === undefined ? 0 : nowMs - this.#runningSinceMs;
		const hasTime = this.#expectedMs < roundMs && this.#tookMs + runningMs < roundMs;
		if (!hasTime || this.#waiting > 0 || this.#mustPause(account, nowMs)) {
			this.#schedule();
			return false;
		}
		this.#start(account, expectedMs, nowMs);
		return true;
	}

	#mustPause({ slowAtMs }: Account, nowMs: number): boolean {
		return (
			nowMs < this.#slowUntilMs && nowMs - slowAtMs < recentMs && nowMs - this.#changedMs < recentMs
		);
	}

	#wait(account: Account, queue: Queue, waiter: Waiter): void {
		if (account.waiting === 0) {
			// It has no claim to what it did not use.
			account.nextMs = Math.max(account.nextMs, this.#virtualMs);
		}
		queue.add(waiter);
		account.waiting += 1;
		this.#waiting += 1;
		this.#schedule();
	}

	#start(account: Account, expectedMs: number, nowMs: number): void {
		this.#end(nowMs);
		this.#virtualMs = Math.max(this.#virtualMs, account.nextMs);
		account.nextMs = this.#virtualMs;
		this.#running = account;
		this.#runningSinceMs = nowMs;
		this.#expectedMs += expectedMs;
		queueMicrotask(this.#endLater);
	}

	/** A tick that is queued by a microtask comes when all microtasks are done: then the turn is, too. */
	readonly #endLater = (): void => process.nextTick(this.#endNow);

	readonly #endNow = (): void => {
		const nowMs = this.#clock.monotonic();
		this.#end(nowMs);
		if (this.#isServing) {
			this.#serve(nowMs);
		}
	};

	/** Charges what the turn took that has just ended. */
	#end(nowMs: number): void {
		const account = this.#running;
		if (account === undefined) {
			return;
		}
		this.#running = undefined;
		const tookMs = nowMs - this.#runningSinceMs;
		this.#tookMs += tookMs;
		account.nextMs += tookMs;
		if (tookMs >= slowMs) {
			account.slowAtMs = nowMs;
			this.#slowUntilMs = nowMs + Math.min(longestPauseMs, tookMs);
		}
	}

	#schedule(): void {
		if (!this.#isScheduled) {
			this.#isScheduled = true;
			setImmediate(this.#onRound);
		}
	}

	readonly #onRound = (): void => {
		const nowMs = this.#clock.monotonic();
		this.#isScheduled = false;
		this.#end(nowMs);
		this.#beginRound(nowMs);
		this.#serve(nowMs);
	};

	#beginRound(nowMs: number): void {
		this.#roundStartMs = nowMs;
		this.#expectedMs = 0;
		this.#tookMs = 0;
	}

	/** Starts the next turn; when that has ended another one, while there is time in this round. */
	#serve(nowMs: number): void {
		this.#isServing = false;
		if (this.#waiting === 0) {
			return;
		}
		if (this.#tookMs >= roundMs) {
			this.#schedule();
			return;
		}
		const account = this.#next(nowMs);
		const waiter = account?.shift();
		if (account === undefined || waiter === undefined) {
			this.#pause ??= this.#clock.setTimer(this.#slowUntilMs - nowMs, () => {
				this.#pause = undefined;
				this.#schedule();
			});
			return;
		}
		account.waiting -= 1;
		this.#waiting -= 1;
		this.#isServing = true;
		this.#start(account, waiter.expectedMs, nowMs);
		waiter.proceed();
	}

	/** Of the callers that wait and need not pause, the one that has used the least. */
	#next(nowMs: number): Account | undefined {
		let next: Account | undefined;
		for (const account of this.#accounts.values()) {
			if (
				account.waiting > 0 &&
				(next === undefined || account.nextMs < next.nextMs) &&
				!this.#mustPause(account, nowMs)
			) {
				next = account;
			}
		}
		return next;
	}

	#accountOf(caller: TurnTaker["caller"]): Account {
		if (caller !== this.#lastCaller) {
			if (this.#lastCaller !== undefined) {
				this.#changedMs = this.#clock.monotonic();
			}
			this.#lastCaller = caller;
		}
		const known = this.#accounts.get(caller);
		if (known !== undefined) {
			return known;
		}
		if (this.#accounts.size >= remembered) {
			this.#forget();
		}
		const account = new Account(this.#virtualMs);
		this.#accounts.set(caller, account);
		return account;
	}

	/** Drops the accounts of callers that do not wait. What they owe, which is one turn at most, is forgotten. */
	#forget(): void {
		for (const [caller, { waiting }] of this.#accounts) {
			if (waiting === 0) {
				this.#accounts.delete(caller);
			}
		}
	}
}
