import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { type KnownTypes, loadTypes } from "@plinth/documents";
import { ResourceService } from "@plinth/proto";
import { ServerService } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { TypeService } from "@plinth/proto/gen/plinth/type/v1/type_service_pb.js";
import { Backoff, type Clock, type Random, type Timer } from "@plinth/runtime";
import { type Watch, WatchClient, type WatchQuery, type WatchUpdate } from "@plinth/watch-client";
import type { LiveState } from "../live-state.ts";
import { Attempts } from "./attempts.ts";
import { OverviewFeed } from "./overview-feed.ts";

/** What a link depends on. */
export interface LinkContext {
	readonly clock: Clock;
	readonly random: Random;
}

/** The connection of a link. */
export type LinkConnection =
	| { readonly phase: "connecting" | "connected" }
	| Extract<LiveState, { readonly phase: "lost" }>;

const retry = { baseMs: 500, maxMs: 10_000 };

/** The longest rest, in milliseconds: a tab that shows nothing must not stop the others. */
const longestRestMs = 1_000;

interface Rest {
	readonly over: Promise<void>;
	readonly end: () => void;
	readonly timer: Timer;
}

/** How long messages are read without a turn for anything else, in milliseconds. */
const longestTurnMs = 25;

/**
 * What all tabs with one token receive from the server: one stream with the watches of all of them, and one with the overview
 * while a tab shows it.
 */
export class ServerLink {
	readonly overview: OverviewFeed;
	readonly #context: LinkContext;
	readonly #typeService: Client<typeof TypeService>;
	readonly #watches: WatchClient;
	readonly #onUnauthenticated: () => void;
	readonly #attempts = new Attempts();
	readonly #listeners = new Set<() => void>();
	readonly #closed = new AbortController();
	#types: Promise<KnownTypes> | undefined;
	#connection: LinkConnection = { phase: "connecting" };
	#heardMs: number;
	/** Set while nothing is read. */
	#rest: Rest | undefined;

	/** @param onUnauthenticated - called when the server does not accept the token of the transport. */
	constructor(transport: Transport, context: LinkContext, onUnauthenticated: () => void) {
		const { clock, random } = context;
		this.#context = context;
		this.#onUnauthenticated = onUnauthenticated;
		this.#heardMs = clock.now();
		this.#typeService = createClient(TypeService, transport);
		this.overview = new OverviewFeed(
			createClient(ServerService, transport),
			{ ...context, attempts: this.#attempts },
			(error) => this.refused(error),
		);
		const resources = createClient(ResourceService, transport);
		this.#watches = new WatchClient({
			client: { watchSet: (request, options) => this.#heard(resources.watchSet(request, options)) },
			// The server has accepted the stream, and may have nothing to say.
			callOptions: () => ({ onHeader: () => this.#become({ phase: "connected" }) }),
			clock,
			random: () => random.next(),
			onConnection: (state) => {
				if (state.kind === "lost") {
					const { rawMessage: reason } = state.error;
					this.#become({ phase: "lost", sinceMs: this.#heardMs, reason });
				} else if (state.kind !== "connected") {
					this.#become({ phase: "connecting" });
				}
			},
		});
	}

	/** The state of the stream of watches. */
	get connection(): LinkConnection {
		return this.#connection;
	}

	/** When the server was heard of last, in milliseconds since the epoch. */
	get heardMs(): number {
		return this.#heardMs;
	}

	/** Calls the listener when the connection changes, until the returned function is called. */
	subscribe(listener: () => void): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	/** @throws ConnectError if there are too many watches. */
	watch(query: WatchQuery, onUpdate: (update: WatchUpdate) => void): Watch {
		return this.#watches.watch(query, onUpdate);
	}

	/**
	 * The types of the server. They are loaded once, and again if the type is not among them.
	 *
	 * @throws ConnectError if the server refuses to list them, or the link is closed.
	 */
	async typesWith(typeKey: string): Promise<KnownTypes> {
		const known = this.#types;
		const types = await this.types();
		if (known === undefined || types.byKey.has(typeKey)) {
			return types;
		}
		if (this.#types === known) {
			this.#types = undefined;
		}
		return this.types();
	}

	/** The types of the server, as they were loaded last. */
	types(): Promise<KnownTypes> {
		if (this.#types === undefined) {
			const loading = this.#loadTypes();
			this.#types = loading;
			loading.catch(() => {
				if (this.#types === loading) {
					this.#types = undefined;
				}
			});
		}
		return this.#types;
	}

	/** A call was refused, perhaps because of the token. */
	refused({ code }: ConnectError): void {
		if (code === Code.Unauthenticated) {
			this.#onUnauthenticated();
		}
	}

	/** Tries now what waits for its next attempt. */
	retryNow(): void {
		this.#attempts.retryNow();
		this.#watches.retryNow();
	}

	/**
	 * Reads nothing more of the watches until `endRest` is called, or for a second: what has come is being painted, and reading the
	 * rest would take the time for that, here and in the server.
	 */
	rest(): void {
		if (this.#rest === undefined) {
			const { promise: over, resolve: end } = Promise.withResolvers<void>();
			this.#rest = {
				over,
				end,
				timer: this.#context.clock.setTimer(longestRestMs, () => this.endRest()),
			};
		}
	}

	/** Reads on. */
	endRest(): void {
		this.#rest?.timer.cancel();
		this.#rest?.end();
		this.#rest = undefined;
	}

	/** Ends all that is received. */
	close(): void {
		this.endRest();
		this.#closed.abort();
		this.#watches.close();
		this.overview.close();
	}

	async #loadTypes(): Promise<KnownTypes> {
		const backoff = new Backoff({ ...retry, ...this.#context });
		const { signal } = this.#closed;
		for (;;) {
			try {
				return await loadTypes(this.#typeService, signal);
			} catch (failure) {
				const error = ConnectError.from(failure);
				if (signal.aborted || !isTransient(error)) {
					this.refused(error);
					throw error;
				}
				await this.#attempts.wait(backoff, signal);
			}
		}
	}

	/** While a snapshot arrives faster than it is read, its messages would leave no turn to timers and to what tabs say. */
	async *#heard<Message>(messages: AsyncIterable<Message>): AsyncIterable<Message> {
		const { clock } = this.#context;
		let turnMs = clock.monotonic();
		for await (const message of messages) {
			this.#heardMs = clock.now();
			this.#become({ phase: "connected" });
			yield message;
			await this.#rest?.over;
			if (clock.monotonic() - turnMs > longestTurnMs) {
				await new Promise<void>((resolve) => clock.setTimer(0, resolve));
				turnMs = clock.monotonic();
			}
		}
	}

	#become(connection: LinkConnection): void {
		if (connection.phase === this.#connection.phase && connection.phase !== "lost") {
			return;
		}
		this.#connection = connection;
		for (const listener of [...this.#listeners]) {
			listener();
		}
	}
}

function isTransient({ code }: ConnectError): boolean {
	return [Code.Unavailable, Code.Unknown, Code.Internal, Code.DeadlineExceeded].includes(code);
}
