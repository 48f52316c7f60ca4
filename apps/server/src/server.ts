import type { Client } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { createControllerManager } from "@plinth/controller";
import type { ResourceService } from "@plinth/proto";
import {
	type Authorizer,
	Namespace,
	Partition,
	Tombstone,
	type TypeRegistry,
} from "@plinth/resource";
import { ensureDefaultTenancy, everyoneMayDoEverything } from "@plinth/resource-service";
import { type Logger, type Runtime, silentLogger, systemRuntime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { createReaper, createTenancyDeletion } from "@plinth/system-controllers";
import { formatListenAddress, type ListenAddress } from "./configuration/listen-address.ts";
import { createInterfaces, type Interfaces } from "./interfaces.ts";
import { defaultListenerLimits, type ListenerLimits } from "./listener/limits.ts";
import { openListener } from "./listener/listener.ts";
import { createPlainEndpoints } from "./listener/plain-endpoints.ts";
import { createRpcHandler } from "./listener/rpc-handler.ts";
import type { Module } from "./module/define-module.ts";
import { registerTypes } from "./module/register-types.ts";
import { openStorage, type StorageChoice } from "./storage-choice.ts";

/** Options of a server. */
export interface ServerOptions {
	readonly storage: StorageChoice;
	/** 127.0.0.1:7575 where it is absent; port 0 takes a free one. */
	readonly listen?: ListenAddress;
	readonly modules?: readonly Module[];
	/**
	 * Decides what those may do who call through the listener. Without it everyone who reaches the
	 * port has full rights.
	 */
	readonly authorizer?: Authorizer;
	readonly runtime?: Runtime;
	readonly logger?: Logger;
	/** Limits that differ from `defaultListenerLimits`. */
	readonly limits?: Partial<ListenerLimits>;
	/** How long running calls may take to finish when the server stops; 10 s where it is absent. */
	readonly stopLimitMs?: number;
}

/** A server within this process. It starts once. */
export interface Server {
	/**
	 * Starts in order: storage, types, resource service, controllers, listener. What has been started
	 * is stopped again where a step fails.
	 *
	 * @throws Error of the step that failed.
	 */
	start(): Promise<void>;
	/**
	 * Stops in order: refuses new calls, ends streams with Unavailable, lets running calls finish,
	 * stops the controllers, closes the storage. Stopping twice waits for the same end.
	 */
	stop(): Promise<void>;
	/** Where the listener is reached, as `http://127.0.0.1:7575`. Once started. */
	readonly address: string;
	/** The resource service with full rights, in process; messages are cloned. Once started. */
	readonly client: Client<typeof ResourceService>;
	/** Resolves when the server has stopped; rejects where it had to because a part of it failed. */
	readonly ended: Promise<void>;
}

const defaultListen: ListenAddress = { host: "127.0.0.1", port: 7575 };
const defaultStopLimitMs = 10_000;

/** A server of the given parts, not started yet. */
export function createServer(options: ServerOptions): Server {
	return new ComposedServer(options);
}

type Phase = "new" | "starting" | "running" | "stopping" | "stopped";

interface Running {
	readonly address: string;
	readonly interfaces: Interfaces;
	/** What is to be stopped, in the order in which it was started. */
	readonly parts: AsyncDisposableStack;
}

class ComposedServer implements Server {
	readonly #options: ServerOptions;
	readonly #logger: Logger;
	readonly #streamsEnd = new AbortController();
	readonly #callsEnd = new AbortController();
	readonly #ended = Promise.withResolvers<void>();
	#phase: Phase = "new";
	#starting: Promise<Running> | undefined;
	#stopping: Promise<void> | undefined;
	#running: Running | undefined;

	constructor(options: ServerOptions) {
		this.#options = options;
		this.#logger = options.logger ?? silentLogger;
		// Whoever does not wait for the end is not to be stopped by it.
		this.#ended.promise.catch(() => {});
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
			throw new Error(`the server is ${this.#phase}: it starts once, create another one`);
		}
		this.#phase = "starting";
		try {
			this.#starting = this.#startParts();
			this.#running = await this.#starting;
		} catch (failure) {
			this.#phase = "stopped";
			this.#ended.resolve();
			throw failure;
		}
		if (this.#phase === "starting") {
			this.#phase = "running";
			this.#logger.info({ address: this.#running.address }, "server ready");
		}
	}

	stop(): Promise<void> {
		this.#stopping ??= this.#stop(undefined);
		return this.#stopping;
	}

	#started(): Running {
		if (this.#running === undefined) {
			throw new Error("the server is not started: await start() first");
		}
		return this.#running;
	}

	async #startParts(): Promise<Running> {
		const {
			modules = [],
			runtime = systemRuntime,
			stopLimitMs = defaultStopLimitMs,
		} = this.#options;
		const logger = this.#logger;
		const limits = { ...defaultListenerLimits, ...this.#options.limits };
		await using started = new AsyncDisposableStack();

		const registry = registerTypes([Tombstone, Partition, Namespace], modules);
		const storage = await openStorage(this.#options.storage, runtime, logger);
		started.defer(() => storage.close());
		const { backend, leases } = storage;
		await ensureDefaultTenancy(backend, runtime);
		await warnOfUnregistered(backend, registry, logger);

		const interfaces = createInterfaces({
			backend,
			registry,
			authorizer: this.#options.authorizer ?? everyoneMayDoEverything,
			modules,
			// The manager works through the interfaces: it comes after them.
			controllers: { state: () => manager.state(), graph: () => manager.graph() },
			runtime,
			logger,
			limits,
			takesCalls: () => this.#phase === "running",
			streamsEnd: this.#streamsEnd.signal,
			callsEnd: this.#callsEnd.signal,
		});
		const controllers = new AbortController();
		const manager = createControllerManager({
			client: interfaces.trustedShared,
			cloningClient: interfaces.trustedCloned,
			runtime,
			leases,
			logger,
		});
		const systemControllers = [
			createReaper(),
			...createTenancyDeletion({ types: () => registry.all() }),
		];
		const controllersOfModules = modules.flatMap((module) => module.controllers);
		for (const controller of [...systemControllers, ...controllersOfModules]) {
			manager.register(controller);
		}
		const managing = manager.run(controllers.signal).catch((failure: unknown) => {
			logger.error({ err: failure }, "the controllers failed: the server stops");
			this.#stopping ??= this.#stop(failure);
		});
		started.defer(async () => {
			controllers.abort();
			await managing;
		});

		const listener = await openListener({
			address: this.#options.listen ?? defaultListen,
			limits,
			clock: runtime.clock,
			logger,
			handler: createRpcHandler(
				interfaces.external,
				createPlainEndpoints(interfaces.external, () => this.#phase === "running"),
				logger,
			),
		});
		started.defer(async () => {
			const abortCalls = runtime.clock.setTimer(stopLimitMs, () =>
				this.#callsEnd.abort(unavailable("the server stops, and the call took too long")),
			);
			await listener.close(stopLimitMs + cutAfterMs);
			abortCalls.cancel();
		});

		return {
			address: `http://${formatListenAddress(listener.address)}`,
			interfaces,
			parts: started.move(),
		};
	}

	async #stop(failure: unknown): Promise<void> {
		if (this.#phase === "new") {
			this.#phase = "stopped";
			this.#ended.resolve();
			return;
		}
		let running: Running;
		try {
			running = await (this.#starting ?? Promise.reject(new Error("not started")));
		} catch {
			return;
		}
		this.#phase = "stopping";
		this.#logger.info({}, "server stopping");
		this.#streamsEnd.abort(unavailable("the server stops: watch again"));
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

/** Says what is stored and can't be asked for: it is kept, and there again once its type is. */
async function warnOfUnregistered(
	backend: StorageBackend,
	registry: TypeRegistry,
	logger: Logger,
): Promise<void> {
	const known = new Set(registry.all().map((type) => type.key));
	for (const [type, count] of await backend.countByType()) {
		if (!known.has(type)) {
			logger.warn({ type, count }, "stored resources of a type that no module registers are kept");
		}
	}
}

/** What calls that were told to end get to say so, before their connections are cut. */
const cutAfterMs = 1_000;

function unavailable(message: string): ConnectError {
	return new ConnectError(message, Code.Unavailable);
}
