import { AsyncResource } from "node:async_hooks";
import type { Clock, Timer } from "@plinth/runtime";

/** What turns may take in one round of the event loop before others wait, in milliseconds. */
const roundMs = 5;

/** A round that lasts longer, and in which turns took less than they may, is over, in milliseconds. */
const longestRoundMs = 20;

/** A turn that took longer is slow, in milliseconds. */
const slowMs = 20;

/** The longest pause after a slow turn, in milliseconds. */
const longestPauseMs = 1_000;

/** A caller with a shorter turn that did not wait is not in the way of others, in milliseconds. */
const noticeableMs = 1;

/** For how long a caller counts as active after it waited or had a turn, in milliseconds. */
const activeForMs = 1_000;

/** Callers that are remembered at least, though they do not wait. */
const remembered = 1_000;

/** Whose time it is before a call has been let in on a connection: of all such connections together. */
export const strangers = {};

/** Whose time it is to check the health: of all that do together. */
export const probes = {};

/** Whose time it is until it is known who calls, on all connections that several subjects use. */
export const gateways = {};

/** Who takes a turn. */
export interface TurnTaker {
	/** Whose time it is: a subject, a connection where there are no tokens, `strangers` or `probes`. */
	readonly caller: string | object;
	/** On which of the caller's connections. */
	readonly connection: object;
}

interface Waiter {
	readonly taker: TurnTaker;
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
	/** Until when it pauses after a slow turn, as long as others are active. */
	pauseUntilMs = Number.NEGATIVE_INFINITY;
	waiting = 0;
	/** Requests that have arrived and not begun. */
	readonly arrived = new Queue();
	/** Calls that have begun, and come first: they hold more. */
	readonly begun = new Queue();

	/** Whether it pauses for nobody, and nobody for it: its calls come by to look, or for the first time. */
	readonly isPassing: boolean;

	constructor(nextMs: number, isPassing: boolean) {
		this.nextMs = nextMs;
		this.isPassing = isPassing;
	}

	shift(): Waiter | undefined {
		return this.begun.shift() ?? this.arrived.shift();
	}
}

/**
 * Shares the time of the event loop between callers, and that of a caller between its connections. A call
 * takes a turn when its head has arrived, and another one when its request has ended; from there it runs
 * without a break until it is answered or waits for something:
 *
 * - a turn begins only when the one before it has ended, so that what it takes is known;
 * - in each round of the event loop turns are taken for a few milliseconds, and those after them wait, so
 *   that sockets and timers are served in between;
 * - of those that wait, the one whose caller has used the least is next;
 * - after a slow turn its caller pauses for as long as it took, up to a second, while others are active: they
 *   get to run in between, also where their calls take many rounds.
 *
 * This is start-time fair queueing (Goyal, Vin and Cheng, 1996) with measured costs: a turn begins, on a
 * virtual scale, where its caller's last one ended or where the turn that runs now began, whichever is
 * later, and the earliest is next. Invariant: of two callers that both wait all the time, neither gets ahead
 * of the other by more than one turn of each, however many calls and connections each of them has.
 */
export class EventLoopTurns {
	readonly #clock: Clock;
	readonly #accounts = new Map<string | object, Account>();
	/** Those of them that wait. */
	readonly #queued = new Set<Account>();
	/** How many accounts there may be before those that do not wait are dropped. */
	#mostAccounts = remembered;
	#waiting = 0;
	/** Connections whose requests wait to begin. */
	#waitingConnections = 0;
	/** Where the last turn began, on a scale of milliseconds that callers have used. */
	#virtualMs = 0;
	/** Whose turn it is, and since when. */
	#running: Account | undefined;
	#runningSinceMs = 0;
	#roundStartMs = 0;
	/** What the turns of this round have taken. */
	#tookMs = 0;
	#isScheduled = false;
	/** Ends a pause in which nobody else waits. */
	#pause: Timer | undefined;
	/** Who was active last, and when; and when somebody else was. */
	#active: Account | undefined;
	#activeAtMs = Number.NEGATIVE_INFINITY;
	#otherAtMs = Number.NEGATIVE_INFINITY;

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
	 * Whether as many requests wait as may, and the connection has its share of them. One of which none waits
	 * is never refused for what others do.
	 *
	 * @param perCaller - how many may wait of one caller.
	 * @param inAll - how many may wait of all.
	 */
	isCrowded({ caller, connection }: TurnTaker, perCaller: number, inAll: number): boolean {
		const account = this.#accounts.get(caller);
		if (account === undefined) {
			return false;
		}
		const { arrived, waiting } = account;
		const own = arrived.sizeOf(connection);
		return (
			(waiting >= perCaller && own >= Math.max(1, perCaller / arrived.connections)) ||
			(this.#waiting >= inAll && own >= Math.max(1, inAll / this.#waitingConnections))
		);
	}

	/**
	 * Calls `proceed` when it is its turn, which may be at once. Returns what makes it wait no longer, if it waits.
	 */
	run(taker: TurnTaker, proceed: () => void): (() => void) | undefined {
		const account = this.#accountOf(taker.caller);
		if (this.#startsAtOnce(account)) {
			proceed();
			return undefined;
		}
		const { arrived } = account;
		const { connections } = arrived;
		// Turns follow each other, and are of different calls.
		const waiter = { taker, proceed: AsyncResource.bind(proceed) };
		this.#wait(account, arrived, waiter);
		this.#waitingConnections += arrived.connections - connections;
		return () => {
			const before = arrived.connections;
			if (arrived.remove(waiter)) {
				this.#waitingConnections += arrived.connections - before;
				this.#left(account);
			}
		};
	}

	/**
	 * Resolves when it is the taker's turn; `undefined` if it is at once. Rejects when the signal aborts.
	 *
	 * @throws the signal's reason if it has aborted.
	 */
	take(taker: TurnTaker, signal: AbortSignal): Promise<void> | undefined {
		signal.throwIfAborted();
		const account = this.#accountOf(taker.caller);
		if (this.#startsAtOnce(account)) {
			return undefined;
		}
		return new Promise((resolve, reject) => {
			const leave = () => {
				if (account.begun.remove(waiter)) {
					this.#left(account);
				}
				reject(signal.reason);
			};
			const proceed = () => {
				signal.removeEventListener("abort", leave);
				resolve();
			};
			const waiter = { taker, proceed };
			this.#wait(account, account.begun, waiter);
			signal.addEventListener("abort", leave, { once: true });
		});
	}

	#startsAtOnce(account: Account): boolean {
		if (this.#running !== undefined) {
			return false;
		}
		const nowMs = this.#clock.monotonic();
		if (nowMs - this.#roundStartMs >= longestRoundMs && this.#tookMs < roundMs) {
			this.#beginRound(nowMs);
		}
		if (this.#waiting > 0 || this.#tookMs >= roundMs || this.#mustPause(account, nowMs)) {
			return false;
		}
		this.#start(account, nowMs);
		return true;
	}

	#mustPause(account: Account, nowMs: number): boolean {
		if (nowMs >= account.pauseUntilMs) {
			return false;
		}
		const othersAtMs = account === this.#active ? this.#otherAtMs : this.#activeAtMs;
		return nowMs - othersAtMs < activeForMs;
	}

	/** The caller is in the way of others, or they are in its way. */
	#noteActive(account: Account, nowMs: number): void {
		if (account.isPassing) {
			return;
		}
		if (account !== this.#active) {
			this.#otherAtMs = this.#activeAtMs;
			this.#active = account;
		}
		this.#activeAtMs = nowMs;
	}

	#wait(account: Account, queue: Queue, waiter: Waiter): void {
		if (account.waiting === 0) {
			// It has no claim to what it did not use.
			account.nextMs = Math.max(account.nextMs, this.#virtualMs);
		}
		queue.add(waiter);
		account.waiting += 1;
		this.#waiting += 1;
		this.#queued.add(account);
		this.#noteActive(account, this.#clock.monotonic());
		if (this.#running === undefined) {
			this.#schedule();
		}
	}

	/** One of its waiters does not wait any more. */
	#left(account: Account): void {
		account.waiting -= 1;
		this.#waiting -= 1;
		if (account.waiting === 0) {
			this.#queued.delete(account);
		}
	}

	#start(account: Account, nowMs: number): void {
		this.#virtualMs = Math.max(this.#virtualMs, account.nextMs);
		account.nextMs = this.#virtualMs;
		this.#running = account;
		this.#runningSinceMs = nowMs;
		queueMicrotask(this.#endLater);
	}

	/** A tick that is queued by a microtask comes when all microtasks are done: then the turn is, too. */
	readonly #endLater = (): void => process.nextTick(this.#endNow);

	readonly #endNow = (): void => {
		const nowMs = this.#clock.monotonic();
		this.#end(nowMs);
		this.#serve(nowMs);
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
		if (tookMs >= noticeableMs) {
			this.#noteActive(account, nowMs);
		}
		if (tookMs >= slowMs && !account.isPassing) {
			account.pauseUntilMs = nowMs + Math.min(longestPauseMs, tookMs);
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
		if (this.#running === undefined) {
			this.#beginRound(nowMs);
			this.#serve(nowMs);
		}
	};

	#beginRound(nowMs: number): void {
		this.#roundStartMs = nowMs;
		this.#tookMs = 0;
	}

	/** Starts the next turn, if there is time in this round. */
	#serve(nowMs: number): void {
		if (this.#waiting === 0) {
			return;
		}
		if (this.#tookMs >= roundMs) {
			this.#schedule();
			return;
		}
		const account = this.#next(nowMs);
		const connections = account?.arrived.connections ?? 0;
		const waiter = account?.shift();
		if (account === undefined || waiter === undefined) {
			this.#waitForPauses(nowMs);
			return;
		}
		this.#waitingConnections += account.arrived.connections - connections;
		this.#left(account);
		this.#start(account, nowMs);
		waiter.proceed();
	}

	/** All that wait have to pause. */
	#waitForPauses(nowMs: number): void {
		let untilMs = Number.POSITIVE_INFINITY;
		for (const { pauseUntilMs } of this.#queued) {
			untilMs = Math.min(untilMs, pauseUntilMs);
		}
		this.#pause?.cancel();
		this.#pause = this.#clock.setTimer(untilMs - nowMs, () => this.#schedule());
	}

	/** Of the callers that wait and need not pause, the one that has used the least. */
	#next(nowMs: number): Account | undefined {
		let next: Account | undefined;
		for (const account of this.#queued) {
			if (
				(next === undefined || account.nextMs < next.nextMs) &&
				!this.#mustPause(account, nowMs)
			) {
				next = account;
			}
		}
		return next;
	}

	#accountOf(caller: TurnTaker["caller"]): Account {
		const known = this.#accounts.get(caller);
		if (known !== undefined) {
			return known;
		}
		if (this.#accounts.size >= this.#mostAccounts) {
			this.#forget();
			this.#mostAccounts = Math.max(remembered, 2 * this.#accounts.size);
		}
		const isPassing = caller === strangers || caller === probes;
		const account = new Account(this.#virtualMs, isPassing);
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
