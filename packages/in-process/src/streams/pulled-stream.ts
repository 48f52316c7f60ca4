import type { Hops } from "../call/hops.ts";

/** The callbacks of the two sides of a stream. */
export interface StreamSides<S, T> {
	/** At the source: produces the next message, or the end. */
	pull(): PromiseLike<IteratorResult<S, unknown>>;
	/** At the source: converts a pulled value to a message. An error fails the stream. */
	convert(value: S): T;
	/** At the source: the stream has ended. Must not throw. */
	exhausted(): void;
	/** At the source: it threw. Returns the error for the reader. Must not throw. */
	failed(thrown: unknown): unknown;
	/** At the reader: the end has arrived, with the error returned by `failed`, if any. Must not throw. */
	arrived(error?: unknown): void;
	/** At the reader: it has left the stream. Must not throw. */
	abandoned(): void;
}

/** How a stream ended. */
type StreamEnd = { readonly kind: "done" } | { readonly kind: "error"; readonly error: unknown };

/** Without an error, or the reader has received it. */
const ended: StreamEnd = { kind: "done" };

type Result<T> = IteratorResult<T, undefined>;

/** Shared by all streams, so frozen. */
const done: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/**
 * The messages from the handler's side of a call to the caller's, for their reader. Nothing is read
 * ahead: each `next()` travels to the source, pulls one message and brings it back.
 *
 *   reader ──next()───▶ hop ──▶ sides.pull()
 *   reader ◀──message── hop ◀── sides.convert()
 *
 * At most one pull is pending at a time: overlapping calls of `next()` are queued. Ending the stream
 * from outside (`end`) settles the pending `next()` at once; a later result of the source is dropped.
 * As with a generator, an error is thrown once, and then the stream has ended.
 */
export class PulledStream<S, T> implements AsyncIterableIterator<T, undefined> {
	readonly #sides: StreamSides<S, T>;
	readonly #hops: Hops;
	#resolve: ((result: Result<T>) => void) | undefined;
	#reject: ((reason: unknown) => void) | undefined;
	/** The number of `next()` calls that have not settled, and the promise of the last of them. */
	#unsettled = 0;
	#last: Promise<Result<T>> | undefined;
	/** The first message, if it was pulled ahead of the reader. */
	#primed: Promise<Result<T>> | undefined;
	/** The message in flight to the reader, if any. */
	#message: Result<T> | undefined;
	#end: StreamEnd | undefined;

	constructor(sides: StreamSides<S, T>, hops: Hops) {
		this.#sides = sides;
		this.#hops = hops;
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	/** Pulls the first message ahead of its reader. Resolves when a message or the end has arrived. */
	async prime(): Promise<void> {
		const primed = this.next();
		this.#primed = primed;
		try {
			await primed;
		} catch {
			// The reader receives it.
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

	/** Leaves the stream: the source is notified and pulled no more. */
	return(): Promise<Result<T>> {
		if (this.#end === undefined) {
			this.end();
			this.#sides.abandoned();
		}
		this.#end = ended;
		return Promise.resolve(done);
	}

	/** Ends the stream from outside, with or without an error. Has no effect if it has ended. */
	end(error?: unknown): void {
		if (this.#end === undefined) {
			this.#end = error === undefined ? ended : { kind: "error", error };
			if (this.#resolve === undefined) {
				// It has arrived and was not read. One that is pending settles with the end instead.
				this.#primed = undefined;
			}
			this.#message = undefined;
			this.#settleWithEnd(this.#end);
		}
	}

	// Created once per stream: closures per message would cost as much as the rest.

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
		if (this.#end !== undefined) {
			return;
		}
		try {
			this.#sides.pull().then(this.#pulled, this.#thrown);
		} catch (thrown) {
			this.#thrown(thrown);
		}
	};

	readonly #pulled = (result: IteratorResult<S, unknown>): void => {
		if (this.#end !== undefined) {
			return;
		}
		if (result.done === true) {
			this.#sides.exhausted();
			this.#hops.respond(() => this.#arrive());
			return;
		}
		try {
			this.#message = { done: false, value: this.#sides.convert(result.value) };
		} catch (thrown) {
			this.#thrown(thrown);
			return;
		}
		this.#hops.respond(this.#deliver);
	};

	readonly #thrown = (thrown: unknown): void => {
		if (this.#end === undefined) {
			const error = this.#sides.failed(thrown);
			this.#hops.respond(() => this.#arrive(error));
		}
	};

	readonly #deliver = (): void => {
		const message = this.#message;
		if (message !== undefined && this.#end === undefined) {
			this.#message = undefined;
			this.#settle(message);
		}
	};

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
