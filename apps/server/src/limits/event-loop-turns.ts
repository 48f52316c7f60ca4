import { AsyncResource } from "node:async_hooks";
import { type Clock, LinkedList, type ListEntry, type Timer } from "@plinth/runtime";

/** The time for turns in one round (an iteration of the event loop), in milliseconds. */
const roundMs = 5;

/** A round ends after this time even if its turns have not used `roundMs`, in milliseconds. */
const longestRoundMs = 20;

/** A longer turn is slow, in milliseconds. */
const slowMs = 20;

/** The longest pause after a slow turn, in milliseconds. */
const longestPauseMs = 1_000;

/** A shorter turn that did not wait does not make its caller active, in milliseconds. */
const noticeableMs = 1;

/** How long a caller counts as active after it waited or had a turn, in milliseconds. */
const activeForMs = 1_000;

/** The minimum number of callers that are remembered while they do not wait. */
const remembered = 1_000;

/** The caller of all connections on which no call has been admitted yet. */
export const unidentified = {};

/** The caller of all health checks. */
export const healthChecks = {};

/** The caller of requests on connections that several subjects use, until their token has been checked. */
export const sharedConnections = {};

/** The taker of a turn. */
export interface TurnTaker {
	/** The caller that the time counts for: a subject, a connection if there are no tokens, or one of the constants. */
	readonly caller: string | object;
	/** The caller's connection. */
	readonly connection: object;
}

interface Waiter {
	readonly taker: TurnTaker;
	readonly proceed: () => void;
	/** The context in which it runs: its own, not that of the turn before. Cheaper than a function that is bound to it. */
	readonly context: AsyncResource | undefined;
	/** Whether it is a request that has arrived, rather than a call that continues. */
	readonly isRequest: boolean;
}

/** Waiters by connection. Connections take turns. */
class Queue {
	readonly #connections = new Map<object, LinkedList<Waiter>>();

	add(waiter: Waiter): ListEntry<Waiter> {
		const { connection } = waiter.taker;
		let waiters = this.#connections.get(connection);
		if (waiters === undefined) {
			waiters = new LinkedList();
			this.#connections.set(connection, waiters);
		}
		return waiters.append(waiter);
	}

	/** Connections with waiters. */
	get connections(): number {
		return this.#connections.size;
	}

	sizeOf(connection: object): number {
		return this.#connections.get(connection)?.size ?? 0;
	}

	/** Returns whether it still waited. */
	remove(entry: ListEntry<Waiter>): boolean {
		const { list } = entry;
		if (!entry.remove()) {
			return false;
		}
		if (list?.size === 0) {
			this.#connections.delete(entry.value.taker.connection);
		}
		return true;
	}

	/** Removes the next waiter, and moves its connection to the end. */
	shift(): Waiter | undefined {
		for (const [connection, waiters] of this.#connections) {
			const waiter = waiters.shift();
			if (waiters.size === 0) {
				this.#connections.delete(connection);
			} else if (this.#connections.size > 1) {
				this.#connections.delete(connection);
				this.#connections.set(connection, waiters);
			}
			return waiter;
		}
		return undefined;
	}
}

/** The time that one caller has used, and its waiters. */
class Account {
	/** The start of its next turn, on the scale of `#virtualMs`. */
	nextMs: number;
	/** The end of its pause after a slow turn, as long as others are active. */
	pauseUntilMs = Number.NEGATIVE_INFINITY;
	waiting = 0;
	/** Requests that have arrived and have not started. */
	readonly arrived = new Queue();
	/** Calls that have started. They come first, because they use more resources. */
	readonly begun = new Queue();

	/** Whether it neither pauses for others nor makes them pause: health checks, and callers that are not known yet. */
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
 * Shares the time of the event loop between callers, and the time of a caller between its connections. A call takes a
 * turn when its head has arrived, and another when its request has ended, unless all of it had arrived before the
 * first turn; from then on it runs until it returns or waits for something:
 *
 * - a turn starts only when the one before it has ended, so that its duration is known;
 * - in each iteration of the event loop (a round), turns run for a few milliseconds, and the others wait, so that
 *   sockets and timers are served in between;
 * - of the waiting callers, the one that has used the least time is next;
 * - after a slow turn, its caller pauses for the duration of that turn, up to a second, while others are active: they
 *   can run in between, even if their calls take many rounds.
 *
 * This is start-time fair queueing (Goyal, Vin and Cheng, 1996) with measured costs: on a virtual scale, a turn starts
 * at the end of its caller's last one or at the start of the current turn, whichever is later, and the earliest is
 * next. Invariant: of two callers that wait continuously, neither gets ahead of the other by more than one turn of each,
 * regardless of the number of their calls and connections.
 */
export class EventLoopTurns {
	readonly #clock: Clock;
	readonly #accounts = new Map<string | object, Account>();
	/** Accounts with waiters. */
	readonly #queued = new Set<Account>();
	/** The number of accounts above which those without waiters are dropped. */
	#mostAccounts = remembered;
	#waiting = 0;
	/** Connections whose requests wait to start. */
	#waitingConnections = 0;
	/** The start of the last turn, on a scale of milliseconds that callers have used. */
	#virtualMs = 0;
	/** The account whose turn is running, and its start. */
	#running: Account | undefined;
	#runningSinceMs = 0;
	/** The account of a request that is being started, as long as its start has not returned. */
	#starting: Account | undefined;
	#roundStartMs = 0;
	/** The duration of the turns in this round. */
	#tookMs = 0;
	#isScheduled = false;
	/** Ends a pause while no other caller waits. */
	#pause: Timer | undefined;
	/** The account that was active last, and when; and when another one was. */
	#active: Account | undefined;
	#activeAtMs = Number.NEGATIVE_INFINITY;
	#otherAtMs = Number.NEGATIVE_INFINITY;

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** The number of known callers. */
	get callers(): number {
		return this.#accounts.size;
	}

	/** The number of waiters. */
	get waiting(): number {
		return this.#waiting;
	}

	/**
	 * Whether the maximum number of requests wait, and the connection has its share of them. A connection without
	 * waiting requests is never refused because of others.
	 *
	 * @param perCaller - the maximum for one caller.
	 * @param inTotal - the maximum for all callers.
	 */
	isCrowded({ caller, connection }: TurnTaker, perCaller: number, inTotal: number): boolean {
		const account = this.#accounts.get(caller);
		if (account === undefined) {
			return false;
		}
		const { arrived, waiting } = account;
		const own = arrived.sizeOf(connection);
		return (
			(waiting >= perCaller && own >= Math.max(1, perCaller / arrived.connections)) ||
			(this.#waiting >= inTotal && own >= Math.max(1, inTotal / this.#waitingConnections))
		);
	}

	/**
	 * Calls `proceed` when it is its turn, which may be immediately. If it waits, returns a function that cancels the wait.
	 */
	run(taker: TurnTaker, proceed: () => void): (() => void) | undefined {
		const account = this.#accountOf(taker.caller);
		if (this.#startsImmediately(account)) {
			this.#startRequest(account, { proceed, context: undefined });
			return undefined;
		}
		const { arrived } = account;
		const { connections } = arrived;
		// A turn starts in the context of the one before it, which belongs to another call.
		const waiter = { taker, proceed, context: new AsyncResource("turn"), isRequest: true };
		const entry = this.#wait(account, arrived, waiter);
		this.#waitingConnections += arrived.connections - connections;
		return () => {
			const before = arrived.connections;
			if (arrived.remove(entry)) {
				this.#waitingConnections += arrived.connections - before;
				this.#left(account);
			}
		};
	}

	/**
	 * Resolves when it is the taker's turn; returns `undefined` if it is immediately. Rejects when the signal aborts.
	 *
	 * @throws the signal's reason if it has aborted.
	 */
	take(taker: TurnTaker, signal: AbortSignal): Promise<void> | undefined {
		signal.throwIfAborted();
		if (this.#startsImmediately(this.#accountOf(taker.caller))) {
			return undefined;
		}
		return new Promise((resolve, reject) => {
			const leave = () => {
				cancel();
				reject(signal.reason);
			};
			const cancel = this.#await(taker, () => {
				signal.removeEventListener("abort", leave);
				resolve();
			});
			signal.addEventListener("abort", leave, { once: true });
		});
	}

	/**
	 * Like `run`, for a call that has started and continues: calls `proceed` when it is its turn, which may be immediately.
	 * If it waits, returns a function that cancels the wait. A request that had arrived as a whole when it was started
	 * continues in the turn in which it was started.
	 */
	continue(taker: TurnTaker, proceed: () => void): (() => void) | undefined {
		const account = this.#accountOf(taker.caller);
		if (account === this.#starting || this.#startsImmediately(account)) {
			this.#starting = undefined;
			proceed();
			return undefined;
		}
		return this.#await(taker, proceed, new AsyncResource("turn"));
	}

	#startRequest(account: Account, waiter: Pick<Waiter, "proceed" | "context">): void {
		this.#starting = account;
		try {
			proceed(waiter);
		} finally {
			this.#starting = undefined;
		}
	}

	#await(taker: TurnTaker, proceed: () => void, context?: AsyncResource): () => void {
		const account = this.#accountOf(taker.caller);
		const waiter = { taker, proceed, context, isRequest: false };
		const entry = this.#wait(account, account.begun, waiter);
		return () => {
			if (account.begun.remove(entry)) {
				this.#left(account);
			}
		};
	}

	#startsImmediately(account: Account): boolean {
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

	/** The caller delays others, or they delay it. */
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

	#wait(account: Account, queue: Queue, waiter: Waiter): ListEntry<Waiter> {
		if (account.waiting === 0) {
			// Unused time does not accumulate.
			account.nextMs = Math.max(account.nextMs, this.#virtualMs);
		}
		const entry = queue.add(waiter);
		account.waiting += 1;
		this.#waiting += 1;
		this.#queued.add(account);
		this.#noteActive(account, this.#clock.monotonic());
		if (this.#running === undefined) {
			this.#schedule();
		}
		return entry;
	}

	/** One of its waiters no longer waits. */
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

	/** A tick that a microtask queues runs after all microtasks, and so after the turn. */
	readonly #endLater = (): void => process.nextTick(this.#endNow);

	readonly #endNow = (): void => {
		const nowMs = this.#clock.monotonic();
		this.#end(nowMs);
		this.#serve(nowMs);
	};

	/** Charges the duration of the turn that has just ended. */
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
		if (waiter.isRequest) {
			this.#startRequest(account, waiter);
		} else {
			proceed(waiter);
		}
	}

	/** All waiting callers have to pause. */
	#waitForPauses(nowMs: number): void {
		let untilMs = Number.POSITIVE_INFINITY;
		for (const { pauseUntilMs } of this.#queued) {
			untilMs = Math.min(untilMs, pauseUntilMs);
		}
		this.#pause?.cancel();
		this.#pause = this.#clock.setTimer(untilMs - nowMs, () => this.#schedule());
	}

	/** The waiting caller that has used the least time and need not pause. */
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
		const isPassing = caller === unidentified || caller === healthChecks;
		const account = new Account(this.#virtualMs, isPassing);
		this.#accounts.set(caller, account);
		return account;
	}

	/** Drops the accounts of callers that do not wait. Their debt, at most one turn, is forgotten. */
	#forget(): void {
		for (const [caller, { waiting }] of this.#accounts) {
			if (waiting === 0) {
				this.#accounts.delete(caller);
			}
		}
	}
}

function proceed({ context, proceed }: Pick<Waiter, "proceed" | "context">): void {
	if (context === undefined) {
		proceed();
	} else {
		context.runInAsyncScope(proceed);
	}
}
