import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { WatchEvent, WatchListRequest, WatchSetEvent, WatchSetRequest } from "@plinth/proto";
import type { ReadyIterator } from "@plinth/rpc-server";
import { malformed, malformedValue, missing } from "../errors/refusal.ts";
import { resourceServiceLimits } from "../requests/limits.ts";
import type { WatchAdmission } from "./watch-admission.ts";
import { endOfWatch } from "./watch-end.ts";
import type { WatchList } from "./watch-list.ts";

/** What a set is made of. */
export interface WatchSetOptions {
	readonly admission: WatchAdmission;
	/**
	 * Waits until the position that the call names is reached. It is that of the whole call: who can't reach it refuses the
	 * call before responding.
	 *
	 * @throws ConnectError that refuses the call.
	 */
	reachPosition(): Promise<void>;
	/** Creates a watch. @param index - its index in the request. */
	watchList(request: WatchListRequest, index: number): WatchList;
}

/**
 * The stream of one WatchSet call: the messages of several WatchLists, each with the id of its watch.
 *
 * ```
 *   WatchList a ──┐
 *   WatchList b ──┼──▶ turns: one message of each watch that has any ──▶ next, nextReady
 *   WatchList c ──┘
 * ```
 *
 * - Watches that have messages take turns, so that a large snapshot does not delay the events of the others.
 * - At most one message of each watch is taken before the client can read it. A slow client therefore costs no more
 *   memory than as many WatchLists do.
 * - A watch that fails ends alone, and its last message has its status. The stream itself fails if the call is aborted
 *   or the caller's token has ended, and ends when all watches have ended.
 */
export class WatchSet
	implements AsyncIterableIterator<WatchSetEvent, undefined>, ReadyIterator<WatchSetEvent>
{
	readonly #request: WatchSetRequest;
	readonly #call: HandlerContext;
	readonly #options: WatchSetOptions;
	/** The watches whose end has not been sent; `undefined` until the first call of `next`. */
	#open: Set<WatchOfSet> | undefined;
	/**
	 * The watches that have a message, or have just sent one and may have another; the next one in turn is first. All
	 * others in `#open` wait for a message.
	 */
	readonly #turns: WatchOfSet[] = [];
	/** Ends the wait of `next`. */
	#waiting: (() => void) | undefined;

	constructor(request: WatchSetRequest, call: HandlerContext, options: WatchSetOptions) {
		this.#request = request;
		this.#call = call;
		this.#options = options;
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	/** Must not be called concurrently. Connect reads a stream one message at a time. */
	async next(): Promise<IteratorResult<WatchSetEvent, undefined>> {
		try {
			if (this.#open === undefined) {
				await this.#options.reachPosition();
				// The call may have ended in the meantime.
				this.#open ??= this.#begin();
			}
			while (this.#open.size > 0) {
				const message = this.#take();
				if (message !== undefined) {
					return { done: false, value: message };
				}
				await new Promise<void>((resolve) => {
					this.#waiting = resolve;
				});
			}
			return { done: true, value: undefined };
		} catch (failure) {
			this.#endAll(failure);
			throw failure;
		}
	}

	/** The next message if it is available; `undefined` if `next` would wait, or if the stream has ended. */
	nextReady(): WatchSetEvent | undefined {
		try {
			return this.#take();
		} catch (failure) {
			this.#endAll(failure);
			throw failure;
		}
	}

	async return(): Promise<IteratorResult<WatchSetEvent, undefined>> {
		this.#endAll(this.#call.signal.reason);
		return { done: true, value: undefined };
	}

	#begin(): Set<WatchOfSet> {
		const { admission } = this.#options;
		const requests = checkWatches(this.#request, admission.watchesPerSet);
		const watches = new Set<WatchOfSet>();
		for (const { id, request } of requests) {
			const index = watches.size;
			const watch = this.#options.watchList(request, index);
			// Each change of the set resumes all of its watches: until the next interval, no client could tell whether they are
			// current, and streams that don't last so long would never move their positions.
			watch.bookmarkOnResume = true;
			const admit = () => admission.admit(this.#call, index);
			watches.add(new WatchOfSet(id, watch, this.#onReady, admit));
		}
		return watches;
	}

	readonly #onReady = (watch: WatchOfSet): void => {
		this.#turns.push(watch);
		this.#wake();
	};

	#wake(): void {
		const waiting = this.#waiting;
		this.#waiting = undefined;
		waiting?.();
	}

	/** The message of the first watch in turn that has one. Those before it wait from now on. */
	#take(): WatchSetEvent | undefined {
		for (;;) {
			const watch = this.#turns.shift();
			if (watch === undefined) {
				return undefined;
			}
			const event = watch.take();
			if (event !== undefined) {
				this.#turns.push(watch);
				return messageOf(watch.id, { case: "event", value: event });
			}
			if (watch.end !== undefined) {
				this.#open?.delete(watch);
				const { failure } = watch.end;
				if (failure?.code === Code.Unauthenticated || this.#call.signal.aborted) {
					throw failure ?? this.#call.signal.reason;
				}
				return messageOf(watch.id, { case: "end", value: endOfWatch(failure) });
			}
			watch.wait();
		}
	}

	#endAll(reason: unknown): void {
		for (const watch of this.#open ?? []) {
			watch.close(reason);
		}
		this.#open = new Set();
		this.#turns.length = 0;
		// A call of `next` that waits returns, as the server counts a stream until it has.
		this.#wake();
	}
}

/** One watch of a set. */
class WatchOfSet {
	readonly id: string;
	/** Set when the watch has ended, with its failure if there is one. */
	end: { readonly failure: ConnectError | undefined } | undefined;
	readonly #watch: WatchList;
	/** Called when a message, or the end, has come for which it waited. */
	readonly #onReady: (watch: this) => void;
	/** The message that has come. */
	#received: WatchEvent | undefined;
	#release: ((failure: ConnectError | undefined) => void) | undefined;

	/** @param admit - returns the function that releases the watch when it has ended, or refuses it. */
	constructor(
		id: string,
		watch: WatchList,
		onReady: (watch: WatchOfSet) => void,
		admit: () => (failure: ConnectError | undefined) => void,
	) {
		this.id = id;
		this.#watch = watch;
		this.#onReady = onReady;
		try {
			this.#release = admit();
		} catch (failure) {
			this.#onFailure(failure);
			return;
		}
		this.wait();
	}

	/** The next message if it is available. Must not be called while it waits. */
	take(): WatchEvent | undefined {
		const received = this.#received;
		this.#received = undefined;
		if (this.end !== undefined) {
			return undefined;
		}
		try {
			if (received !== undefined) {
				this.#watch.throwIfTokenEnded();
				return received;
			}
			return this.#watch.nextReady();
		} catch (failure) {
			this.#finish(ConnectError.from(failure));
			return undefined;
		}
	}

	/** Waits for the next message. */
	wait(): void {
		this.#watch.next().then(this.#onResult, this.#onFailure);
	}

	/** Ends the watch without a message. */
	close(reason: unknown): void {
		if (this.end === undefined) {
			this.#finish(reason === undefined ? undefined : ConnectError.from(reason, Code.Canceled));
		}
	}

	readonly #onResult = ({ done, value }: IteratorResult<WatchEvent, undefined>): void => {
		if (this.end === undefined) {
			if (done === true) {
				this.#finish(undefined);
			} else {
				this.#received = value;
			}
			this.#onReady(this);
		}
	};

	readonly #onFailure = (failure: unknown): void => {
		if (this.end === undefined) {
			this.#finish(ConnectError.from(failure));
			this.#onReady(this);
		}
	};

	#finish(failure: ConnectError | undefined): void {
		this.end = { failure };
		this.#release?.(failure);
		this.#watch.return().catch(() => {});
	}
}

function messageOf(watchId: string, content: WatchSetEvent["content"]): WatchSetEvent {
	return { $typeName: "plinth.resource.v1.WatchSetEvent", watchId, content };
}

/** A watch of a request that was checked. */
interface CheckedWatch {
	readonly id: string;
	readonly request: WatchListRequest;
}

/** @throws ConnectError InvalidArgument if the set itself is invalid. What each watch requests is checked when it opens. */
function checkWatches(
	{ watches }: WatchSetRequest,
	watchesPerSet: number,
): readonly CheckedWatch[] {
	if (watches.length === 0) {
		throw missing("watches");
	}
	if (watches.length > watchesPerSet) {
		throw malformed(
			"watches",
			`has ${watches.length} entries, more than ${watchesPerSet}: watch the others in further streams`,
		);
	}
	const indexes = new Map<string, number>();
	return watches.map(({ id, request }, index) => {
		const path = `watches[${index}]`;
		if (id === "") {
			throw missing(`${path}.id`);
		}
		if (id.length > resourceServiceLimits.watchIdLength) {
			const most = resourceServiceLimits.watchIdLength;
			throw malformedValue(`${path}.id`, `must be at most ${most} characters long`, id);
		}
		const first = indexes.get(id);
		if (first !== undefined) {
			throw malformedValue(`${path}.id`, `must differ from watches[${first}].id`, id);
		}
		indexes.set(id, index);
		if (request === undefined) {
			throw missing(`${path}.request`);
		}
		return { id, request };
	});
}
