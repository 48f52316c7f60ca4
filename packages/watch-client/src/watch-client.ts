import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import type {
	ResourceService,
	WatchListRequestSchema,
	WatchSetEvent,
	WatchSetRequestSchema,
} from "@plinth/proto";
import { systemClock, type WatchClock, type WatchTimer } from "./clock.ts";
import { RetryDelays } from "./retry-delays.ts";
import { errorOf, isOutdated, isTransient, WatchState } from "./watch-state.ts";
import type { WatchUpdate } from "./watch-update.ts";

/** Options of a watch client. */
export interface WatchClientOptions {
	/** Opens the streams. */
	readonly client: Pick<Client<typeof ResourceService>, "watchSet">;
	/** The options of the next stream, such as headers with a token. Called for each stream. */
	readonly callOptions?: () => Omit<CallOptions, "signal" | "timeoutMs">;
	/** Called when the state of the connection has changed. */
	readonly onConnection?: (state: ConnectionState) => void;
	/** The maximum number of watches at a time: that of the server, which is 100 by default. */
	readonly maxWatches?: number;
	/**
	 * A stream without a message for this long is taken for broken, in milliseconds: 75,000 by default. The server sends
	 * something at least every 30 s.
	 */
	readonly silenceMs?: number;
	readonly clock?: WatchClock;
	/** Returns a number from 0 to 1; `Math.random` by default. */
	readonly random?: () => number;
}

/** The connection of a watch client, for all its watches. */
export type ConnectionState =
	/** There is no watch. */
	| { readonly kind: "idle" }
	| { readonly kind: "connecting" }
	/** Messages come. */
	| { readonly kind: "connected" }
	/** What is known gets old, until the client is connected again. It tries that by itself. */
	| { readonly kind: "lost"; readonly error: ConnectError };

/** What to watch. */
export type WatchQuery = Pick<
	MessageInitShape<typeof WatchListRequestSchema>,
	"type" | "tenancy" | "namePrefix" | "region" | "afterVersion"
>;

/** A watch of a client. */
export interface Watch {
	/** The version of the last commit that was received completely; empty before the end of the first snapshot. */
	readonly version: string;
	/** Ends the watch. Nothing more is received. */
	close(): void;
}

/**
 * Follows several watches over one stream, in browsers and elsewhere: `ResourceService.WatchSet`.
 *
 * ```
 *   watch, close ──▶ the set ──▶ one stream, opened again when the set has grown, or when it was lost
 *                                  └──▶ each watch resumes after the last commit that it has received
 * ```
 *
 * Invariants:
 *
 * - There is at most one stream that is read. Messages of earlier ones are dropped.
 * - A commit is passed on completely or not at all, so that a watch that resumes repeats nothing and skips nothing.
 * - Only a watch that is added interrupts snapshots of others, which then begin again. Watches that are closed or repeated
 *   wait until the snapshots are complete.
 */
export class WatchClient {
	readonly #options: WatchClientOptions;
	readonly #clock: WatchClock;
	readonly #random: () => number;
	readonly #watches = new Map<string, OpenWatch>();
	readonly #delays: RetryDelays;
	#lastId = 0;
	#stream: Stream | undefined;
	/** Opens the stream again after a loss. */
	#retry: WatchTimer | undefined;
	#isReopenScheduled = false;
	/** Whether the stream is to be opened again when no snapshot is on its way. */
	#isChangeWaiting = false;
	#state: ConnectionState = { kind: "idle" };
	#isClosed = false;

	constructor(options: WatchClientOptions) {
		this.#options = options;
		this.#clock = options.clock ?? systemClock;
		this.#random = options.random ?? Math.random;
		this.#delays = new RetryDelays(this.#random);
	}

	get state(): ConnectionState {
		return this.#state;
	}

	/**
	 * Adds a watch. Its updates are passed to `onUpdate`, which must not throw, later than this call returns.
	 *
	 * @param query - with `afterVersion`, the watch resumes after that version, and otherwise begins with a snapshot.
	 * @throws ConnectError ResourceExhausted if there are too many watches; FailedPrecondition if the client is closed.
	 */
	watch(query: WatchQuery, onUpdate: (update: WatchUpdate) => void): Watch {
		if (this.#isClosed) {
			throw new ConnectError("the watch client is closed", Code.FailedPrecondition);
		}
		const { maxWatches = defaultMaxWatches } = this.#options;
		if (this.#watches.size >= maxWatches) {
			throw new ConnectError(
				`too many watches: at most ${maxWatches} at once; close some of them, or use another client`,
				Code.ResourceExhausted,
			);
		}
		this.#lastId += 1;
		const id = `${this.#lastId}`;
		const open: OpenWatch = {
			query,
			state: new WatchState(query.afterVersion ?? "", (update) => {
				// The watch may have been closed by the update before.
				if (this.#watches.get(id) === open) {
					onUpdate(update);
				}
			}),
			delays: new RetryDelays(this.#random),
			retry: undefined,
		};
		this.#watches.set(id, open);
		this.#reopenSoon();
		return {
			get version() {
				return open.state.afterVersion;
			},
			close: () => this.#remove(id),
		};
	}

	/**
	 * Makes the attempts at once that wait for their time: something has happened after which they may succeed, as when the network
	 * has returned. Further failures are followed by the shortest waits again. Without a loss, nothing happens: it may be called
	 * at any time.
	 */
	retryNow(): void {
		this.#delays.reset();
		let isWaiting = false;
		for (const watch of this.#watches.values()) {
			watch.delays.reset();
			isWaiting ||= watch.retry !== undefined;
			watch.retry?.timer.cancel();
			watch.retry = undefined;
		}
		if (this.#retry !== undefined) {
			this.#retry.cancel();
			this.#retry = undefined;
			this.#open();
		} else if (isWaiting) {
			this.#reopenAfterSnapshots();
		}
	}

	/** Ends all watches. */
	close(): void {
		this.#isClosed = true;
		for (const id of [...this.#watches.keys()]) {
			this.#remove(id);
		}
	}

	#remove(id: string): void {
		const watch = this.#watches.get(id);
		if (watch === undefined) {
			return;
		}
		watch.retry?.timer.cancel();
		this.#watches.delete(id);
		if (this.#watches.size === 0) {
			this.#leaveStream();
			this.#retry?.cancel();
			this.#retry = undefined;
			this.#delays.reset();
			this.#become({ kind: "idle" });
		} else if (this.#stream?.ids.delete(id)) {
			this.#reopenAfterSnapshots();
		}
	}

	/** Opens the stream in a microtask, so that watches that are added together need one stream. */
	#reopenSoon(): void {
		if (!this.#isReopenScheduled) {
			this.#isReopenScheduled = true;
			queueMicrotask(() => {
				this.#isReopenScheduled = false;
				// After a loss, watches that are added wait with the others.
				if (this.#retry === undefined && this.#watches.size > 0) {
					this.#open();
				}
			});
		}
	}

	#reopenAfterSnapshots(): void {
		this.#isChangeWaiting = true;
		const ids = this.#stream?.ids ?? [];
		if (![...ids].some((id) => this.#watches.get(id)?.state.isInSnapshot)) {
			this.#reopenSoon();
		}
	}

	#open(): void {
		this.#leaveStream();
		this.#isChangeWaiting = false;
		const watches = [...this.#watches].filter(([, { retry }]) => retry === undefined);
		if (watches.length === 0) {
			// All that are left have ended, and wait for their next attempt.
			const waiting = [...this.#watches.values()].find(({ retry }) => retry !== undefined);
			if (waiting?.retry !== undefined) {
				this.#become({ kind: "lost", error: waiting.retry.error });
			}
			return;
		}
		const stream: Stream = {
			ids: new Set(watches.map(([id]) => id)),
			end: new AbortController(),
			lastMessageMs: this.#clock.monotonic(),
			silence: undefined,
		};
		this.#stream = stream;
		if (this.#state.kind === "idle") {
			this.#become({ kind: "connecting" });
		}
		for (const [, { state }] of watches) {
			state.begin();
		}
		if (this.#stream === stream) {
			void this.#read(stream, {
				watches: watches.map(([id, { query, state }]) => ({
					id,
					request: { ...query, afterVersion: state.afterVersion, bookmarks: true },
				})),
			});
			this.#watchSilence(stream);
		}
	}

	/** Reads a stream until it ends, or is no longer the current one. Never rejects. */
	async #read(
		stream: Stream,
		request: MessageInitShape<typeof WatchSetRequestSchema>,
	): Promise<void> {
		const { client, callOptions } = this.#options;
		let error: ConnectError;
		try {
			const options = { ...callOptions?.(), signal: stream.end.signal, timeoutMs: 0 };
			for await (const message of client.watchSet(request, options)) {
				if (this.#stream !== stream) {
					return;
				}
				this.#receive(stream, message);
			}
			error = new ConnectError("the server ended the stream", Code.Unavailable);
		} catch (failure) {
			error = ConnectError.from(failure);
		}
		if (this.#stream === stream) {
			this.#lose(error);
		}
	}

	#receive(stream: Stream, { watchId, content }: WatchSetEvent): void {
		stream.lastMessageMs = this.#clock.monotonic();
		this.#delays.reset();
		if (this.#state.kind !== "connected") {
			this.#become({ kind: "connected" });
		}
		const watch = this.#watches.get(watchId);
		if (watch !== undefined && stream.ids.has(watchId)) {
			if (content.case === "event") {
				watch.delays.reset();
				watch.state.receive(content.value);
			} else if (content.case === "end") {
				stream.ids.delete(watchId);
				this.#ended(watchId, watch, errorOf(content.value));
			}
		}
		if (this.#isChangeWaiting && this.#stream === stream) {
			this.#reopenAfterSnapshots();
		}
	}

	/** A watch has ended, while the others go on. */
	#ended(id: string, watch: OpenWatch, error: ConnectError): void {
		watch.state.lose();
		if (!isTransient(error)) {
			this.#refuse(id, watch, error);
			return;
		}
		if (isOutdated(error)) {
			watch.state.restart();
		}
		const timer = this.#clock.setTimer(watch.delays.next(), () => {
			watch.retry = undefined;
			this.#reopenAfterSnapshots();
		});
		watch.retry = { timer, error };
		watch.state.interrupt(error);
	}

	#refuse(id: string, watch: OpenWatch, error: ConnectError): void {
		watch.retry?.timer.cancel();
		watch.state.end(error);
		this.#remove(id);
	}

	/** The stream has ended. */
	#lose(error: ConnectError): void {
		const ids = [...(this.#stream?.ids ?? [])];
		this.#leaveStream();
		if (ids.length === 0) {
			// All its watches have ended, and wait for their next attempt.
			this.#become({ kind: "lost", error });
			return;
		}
		if (!isTransient(error)) {
			for (const [id, watch] of [...this.#watches]) {
				this.#refuse(id, watch, error);
			}
			return;
		}
		this.#retry = this.#clock.setTimer(this.#delays.next(), () => {
			this.#retry = undefined;
			this.#open();
		});
		this.#become({ kind: "lost", error });
	}

	#leaveStream(): void {
		const stream = this.#stream;
		if (stream !== undefined) {
			this.#stream = undefined;
			stream.silence?.cancel();
			for (const id of stream.ids) {
				this.#watches.get(id)?.state.lose();
			}
			stream.end.abort();
		}
	}

	/** One timer at a time, which is not set again for each message. */
	#watchSilence(stream: Stream): void {
		const { silenceMs = defaultSilenceMs } = this.#options;
		const leftMs = stream.lastMessageMs + silenceMs - this.#clock.monotonic();
		stream.silence = this.#clock.setTimer(Math.max(0, leftMs), () => {
			if (this.#clock.monotonic() - stream.lastMessageMs < silenceMs) {
				this.#watchSilence(stream);
			} else if (this.#stream === stream) {
				const message = `the server has sent nothing for ${silenceMs} ms`;
				this.#lose(new ConnectError(message, Code.Unavailable));
			}
		});
	}

	#become(state: ConnectionState): void {
		if (this.#state.kind !== state.kind || state.kind === "lost") {
			this.#state = state;
			this.#options.onConnection?.(state);
		}
	}
}

const defaultMaxWatches = 100;

const defaultSilenceMs = 75_000;

interface OpenWatch {
	readonly query: WatchQuery;
	readonly state: WatchState;
	readonly delays: RetryDelays;
	/** Set while it waits for its next attempt, after it has ended alone with the error. */
	retry: { readonly timer: WatchTimer; readonly error: ConnectError } | undefined;
}

interface Stream {
	/** The watches that have not ended in it, and have not been closed. */
	readonly ids: Set<string>;
	readonly end: AbortController;
	/** On the monotonic clock. */
	lastMessageMs: number;
	silence: WatchTimer | undefined;
}
