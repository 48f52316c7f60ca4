import type { Hops } from "../call/hops.ts";

/** What the two sides of a stream do and are told. */
export interface StreamSides<S, T> {
	/** At the source: makes the next message, or the end. */
	pull(): PromiseLike<IteratorResult<S, unknown>>;
	/** At the source: makes a message of what was pulled. What it throws fails the stream. */
	convert(value: S): T;
	/** At the source: there is no more. Must not throw. */
	exhausted(): void;
	/** At the source: it threw. Returns what the reader gets, and must not throw. */
	failed(thrown: unknown): unknown;
	/** At the reader: the end has arrived, with `failed`'s error or without. Must not throw. */
	arrived(error?: unknown): void;
	/** At the reader: it wants no more. Must not throw. */
	abandoned(): void;
}

/** How a stream ended, for the reader. */
type StreamEnd = { readonly kind: "done" } | { readonly kind: "error"; readonly error: unknown };

/** Without an error, or the reader has had it. */
const ended: StreamEnd = { kind: "done" };

type Result<T> = IteratorResult<T, undefined>;

/** One object for all ends, so frozen. */
const done: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/**
 * One direction of messages between the two sides of a call, as its reader sees it. Nothing is
 * sent ahead: each `next()` travels to the source, pulls one message and brings it back.
 *
 *   reader ──next()───▶ hop ──▶ sides.pull()
 *   reader ◀──message── hop ◀── sides.convert()
 *
 * There is at most one pull at a time: a `next()` during another waits for its turn. Ending the
 * stream from outside (`end`) settles the waiting `next()` at once; what the source answers to it
 * later is dropped. As with a generator, an error comes once, and then the end.
 */
export class PulledStream<S, T> implements AsyncIterableIterator<T, undefined> {
	readonly #sides: StreamSides<S, T>;
	readonly #hops: Hops;
	#resolve: ((result: Result<T>) => void) | undefined;
	#reject: ((reason: unknown) => void) | undefined;
	/** The `next()` calls that have not settled, and the promise of the last of them. */
	#unsettled = 0;
	#last: Promise<Result<T>> | undefined;
	/** The first message, where it was read ahead of the reader. */
	#primed: Promise<Result<T>> | undefined;
	/** The one message that may be on its way to the reader. */
	#message: Result<T> | undefined;
	#end: StreamEnd | undefined;
	/** Whether the source has stopped without an end of its own; the reader hears why in `end`. */
	#isCutOff = false;

	constructor(sides: StreamSides<S, T>, hops: Hops) {
		this.#sides = sides;
		this.#hops = hops;
	}

	get hasEnded(): boolean {
		return this.#end !== undefined;
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	/** Pulls the first message ahead of its reader. Resolves when it, or an end, is there. */
	async prime(): Promise<void> {
		const primed = this.next();
		this.#primed = primed;
		try {
			await primed;
		} catch {
			// The reader gets it.
		}
	}

	next(): Promise<Result<T>> {
		const primed = this.#primed;
		if (primed !== undefined) {
			this.#primed = undefined;
			return primed;
		}
		const former = this.#last;
		const next =
			this.#unsettled === 0 || former === undefined
				? this.#turn()
				: former.then(this.#turn, this.#turn);
		this.#unsettled += 1;
		this.#last = next;
		return next;
	}

	/** Ends the stream early: the source is told, and pulled no more. */
	return(): Promise<Result<T>> {
		if (this.#end === undefined) {
			this.end();
			this.#sides.abandoned();
		}
		this.#end = ended;
		return Promise.resolve(done);
	}

	/**
	 * The source has been stopped: what it still says is not the end of the stream, and the reader
	 * waits until `end` says what is.
	 */
	cutOff(): void {
		this.#isCutOff = true;
	}

	/** Ends the stream from outside, with an error or without. A stream that has ended stays so. */
	end(error?: unknown): void {
		if (this.#end === undefined) {
			this.#end = error === undefined ? ended : { kind: "error", error };
			if (this.#resolve === undefined) {
				// It is there and was not read. One that is still to come brings the end instead.
				this.#primed = undefined;
			}
			this.#message = undefined;
			this.#settleWithEnd(this.#end);
		}
	}

	// What runs for every message is made once for the stream: closures of a message's own would
	// cost as much as the rest.

	readonly #turn = (): Promise<Result<T>> => new Promise(this.#begin);

	readonly #begin = (
		resolve: (result: Result<T>) => void,
		reject: (reason: unknown) => void,
	): void => {
		this.#resolve = resolve;
		this.#reject = reject;
		if (this.#end === undefined) {
			this.#hops.pull(this.#pull);
		} else {
			this.#settleWithEnd(this.#end);
		}
	};

	readonly #pull = (): void => {
		if (this.#isDeaf()) {
			return;
		}
		try {
			this.#sides.pull().then(this.#pulled, this.#thrown);
		} catch (thrown) {
			this.#thrown(thrown);
		}
	};

	readonly #pulled = (result: IteratorResult<S, unknown>): void => {
		if (this.#isDeaf()) {
			return;
		}
		if (result.done === true) {
			this.#sides.exhausted();
			this.#hops.answer(() => this.#arrive());
			return;
		}
		try {
			this.#message = { done: false, value: this.#sides.convert(result.value) };
		} catch (thrown) {
			this.#thrown(thrown);
			return;
		}
		this.#hops.answer(this.#deliver);
	};

	readonly #thrown = (thrown: unknown): void => {
		if (!this.#isDeaf()) {
			const error = this.#sides.failed(thrown);
			this.#hops.answer(() => this.#arrive(error));
		}
	};

	readonly #deliver = (): void => {
		const message = this.#message;
		if (message !== undefined && this.#end === undefined) {
			this.#message = undefined;
			this.#settle(message);
		}
	};

	/** Nobody waits for what the source says, or it no longer counts. */
	#isDeaf(): boolean {
		return this.#end !== undefined || this.#isCutOff;
	}

	#arrive(error?: unknown): void {
		if (this.#end === undefined) {
			this.#sides.arrived(error);
			this.end(error);
		}
	}

	#settle(result: Result<T>): void {
		const resolve = this.#resolve;
		if (resolve !== undefined) {
			this.#unsettled -= 1;
			this.#resolve = undefined;
			this.#reject = undefined;
			resolve(result);
		}
	}

	#settleWithEnd(end: StreamEnd): void {
		const reject = this.#reject;
		if (end.kind === "done") {
			this.#settle(done);
		} else if (reject !== undefined) {
			this.#unsettled -= 1;
			this.#resolve = undefined;
			this.#reject = undefined;
			this.#end = ended;
			reject(end.error);
		}
	}
}
