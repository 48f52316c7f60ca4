import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { ResourceService } from "@plinth/proto";
import type { Logger } from "@plinth/runtime";
import { defaultLogger } from "./logging/default-logger.ts";
import type { ServerOptions } from "./server-options.ts";
import { type RunningParts, startParts } from "./start/start-parts.ts";

/** The start of a server was interrupted by `stop`. */
export class StartInterrupted extends Error {
	override readonly name = "StartInterrupted";

	constructor() {
		super("the server was stopped while it was starting");
	}
}

/** A server within this process. It starts once. */
export interface Server {
	/**
	 * Starts in order: storage, types, resource service, internal listener, discovery, controllers,
	 * listener. If a step fails, the parts that have been started are stopped.
	 *
	 * @throws Error of the step that failed; StartInterrupted if `stop` was called in the meantime.
	 */
	start(): Promise<void>;
	/**
	 * Stops in order: refuses new calls, ends streams with Unavailable, lets running calls finish,
	 * stops the controllers, closes the storage. A second call waits for the same stop.
	 */
	stop(): Promise<void>;
	/** Checks now whether the files of TLS and access have changed, as it does every 2 s by itself. */
	reload(): Promise<void>;
	/** The URL of the listener, such as `http://127.0.0.1:7575`. Available once started. */
	readonly address: string;
	/** The resource service, in process and with full rights; messages are cloned. Available once started. */
	readonly client: Client<typeof ResourceService>;
	/** Resolves when a stop begins, by `stop` or because a part failed. */
	readonly stopping: Promise<void>;
	/** Resolves when the server has stopped; rejects if it stopped because a part of it failed. */
	readonly ended: Promise<void>;
}

/** Creates a server, which is not started yet. */
export function createServer(options: ServerOptions): Server {
	return new ComposedServer(options);
}

type Phase = "new" | "starting" | "running" | "stopping" | "stopped";

class ComposedServer implements Server {
	readonly #options: ServerOptions;
	readonly #logger: Logger;
	readonly #streamsEnd = new AbortController();
	readonly #callsEnd = new AbortController();
	/** Interrupts a start that loads the storage or waits for other deployments. */
	readonly #startEnd = new AbortController();
	readonly #stopBegan = Promise.withResolvers<void>();
	readonly #ended = Promise.withResolvers<void>();
	#phase: Phase = "new";
	#starting: Promise<RunningParts> | undefined;
	#stopping: Promise<void> | undefined;
	#running: RunningParts | undefined;

	constructor(options: ServerOptions) {
		this.#options = options;
		this.#logger = options.logger ?? defaultLogger();
		// A rejection that no caller observes must not end the process.
		this.#ended.promise.catch(() => {});
	}

	get stopping(): Promise<void> {
		return this.#stopBegan.promise;
	}

	get ended(): Promise<void> {
		return this.#ended.promise;
	}

	get address(): string {
		return this.#started().address;
	}

	get client(): Client<typeof ResourceService> {
		return this.#started().interfaces.trustedCloned;
	}

	async start(): Promise<void> {
		if (this.#phase !== "new") {
			throw new Error(
				`the server is ${this.#phase}: a server starts only once, create another one`,
			);
		}
		this.#phase = "starting";
		try {
			this.#starting = startParts({
				options: this.#options,
				logger: this.#logger,
				acceptsCalls: () => this.#phase === "running",
				fail: (failure) => this.#fail(failure),
				streamsEnd: this.#streamsEnd.signal,
				callsEnd: this.#callsEnd,
				startEnd: this.#startEnd.signal,
			});
			this.#running = await this.#starting;
		} catch (failure) {
			this.#phase = "stopped";
			this.#ended.resolve();
			// The reason of the interruption says more than the error of the interrupted step.
			this.#startEnd.signal.throwIfAborted();
			throw failure;
		}
		if (this.#phase === "starting") {
			this.#phase = "running";
			this.#logger.info({ address: this.#running.address }, "server ready");
		}
	}

	async reload(): Promise<void> {
		await Promise.all(this.#started().reloads.map((reload) => reload()));
	}

	stop(): Promise<void> {
		this.#startEnd.abort(new StartInterrupted());
		this.#stopping ??= this.#stop(undefined);
		return this.#stopping;
	}

	/** A part has failed that the server can't run without. */
	#fail(failure: unknown): void {
		if (this.#stopping !== undefined) {
			this.#logger.error(
				{ err: failure },
				"a part of the server failed while the server was stopping",
			);
			return;
		}
		this.#logger.error({ err: failure }, "a part of the server failed: the server is stopping");
		this.#startEnd.abort(failure);
		this.#stopping = this.#stop(failure);
		// `ended` reports the result.
		this.#stopping.catch(() => {});
	}

	#started(): RunningParts {
		if (this.#running === undefined) {
			throw new Error("the server is not started: await start() first");
		}
		return this.#running;
	}

	async #stop(failure: unknown): Promise<void> {
		this.#stopBegan.resolve();
		if (this.#phase === "new") {
			this.#phase = "stopped";
			this.#ended.resolve();
			return;
		}
		this.#streamsEnd.abort(
			new ConnectError("the server is stopping: watch again", Code.Unavailable),
		);
		let running: RunningParts;
		try {
			running = await (this.#starting ?? Promise.reject(new Error("not started")));
		} catch {
			return;
		}
		this.#phase = "stopping";
		this.#logger.info({}, "server stopping");
		try {
			await running.parts.disposeAsync();
		} catch (error) {
			this.#ended.reject(error);
			throw error;
		} finally {
			this.#phase = "stopped";
		}
		if (failure === undefined) {
			this.#ended.resolve();
		} else {
			this.#ended.reject(failure);
		}
		this.#logger.info({}, "server stopped");
	}
}
