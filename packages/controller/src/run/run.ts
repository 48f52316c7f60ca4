import type { TypeStats } from "@plinth/cache";
import { encodeFence, type Fence } from "@plinth/runtime";
import { RuntimeClient } from "../client/runtime-client.ts";
import type { CustomWatch } from "../define/watch.ts";
import type { QueueState } from "../queue/merging-queue.ts";
import { Task } from "../queue/task.ts";
import type { RunningWork } from "../queue/worker-pool.ts";
import type { CacheUpdater } from "./cache-updater.ts";
import { type ControllerComponents, createControllerComponents, poolsOf } from "./components.ts";
import { consume } from "./custom-events.ts";
import { enqueueOnChange, enqueuePrimed, readyLimit } from "./enqueue-changes.ts";
import { followWatch } from "./follow-watch.ts";
import type { OwnWrites } from "./own-writes.ts";
import type { Phase } from "./phase.ts";
import { primeCache } from "./prime-cache.ts";
import type { RunEnvironment } from "./run-environment.ts";
import { settlesWithin } from "./settles-within.ts";
import type { UndecodableState } from "./undecodable.ts";
import { WorkContext, type WorkScope } from "./work-context.ts";

/** Why a run has ended. */
export type RunEnd =
	| { readonly kind: "stopped" }
	| { readonly kind: "lease-lost" }
	| { readonly kind: "failed"; readonly error: unknown };

/** What one run is made with. */
export interface RunOptions {
	readonly environment: RunEnvironment;
	readonly ownWrites: OwnWrites;
	/** Ends the run gracefully. */
	readonly stop: AbortSignal;
	/** The lease that the run holds: its end ends the run at once. */
	readonly lease: { readonly signal: AbortSignal; readonly fence: Fence } | undefined;
	/** Keys that an earlier run is still working on, with the end of that work. */
	readonly locked: ReadonlyMap<string, Promise<void>>;
	readonly onPhase: (phase: Phase) => void;
}

/** What there is in a run's queues and cache. */
export interface RunState {
	readonly requests: QueueState;
	/** The mapping queues, by watched type or by name of a custom watch. */
	readonly mappings: Readonly<Record<string, QueueState>>;
	readonly cached: readonly TypeStats[];
	/** Reconciles that run for longer than `reconcileReportMs`; what has run longest comes first. */
	readonly stillRunning: readonly RunningWork[];
	/** Keys whose reconcile has passed its time limit and has not ended. */
	readonly overdue: readonly string[];
	/** Cached resources that can't be decoded. */
	readonly undecodable: UndecodableState;
}

/**
 * One life of a controller, in five steps:
 *
 * 1. Initialize.
 * 2. Build the cache, new and empty. (An earlier run's cache is never used again.)
 * 3. Prime: a watch per type, all at once; their snapshots go into the cache, and nowhere else.
 *    Queues exist, but nothing is in them, and nothing puts anything there.
 * 4. Run, when the last priming watch has ended: a watch per type, resumed after the version of its
 *    snapshot. Everything cached is queued.
 * 5. From then on, each event goes into the cache, then into a queue.
 *
 * The first thing that ends it decides how: a stop lets reconciles finish; a failure aborts them; a
 * lost lease aborts them and refuses their writes. When `run` has resolved, nothing of it goes on but
 * work that ignores its signal (`leftovers`), and that can't write any more.
 */
export class Run {
	readonly #options: RunOptions;
	readonly #ending = Promise.withResolvers<RunEnd>();
	/** Resolves when the lease is lost, also when the run is ending already. */
	readonly #lost = Promise.withResolvers<void>();
	/** Ends watches, sources and the initializer. */
	readonly #watching = new AbortController();
	readonly #background: Promise<void>[] = [];
	readonly #scope: WorkScope;
	#refusal: string | undefined;
	#endedAtMs: number | undefined;
	#components: ControllerComponents | undefined;

	constructor(options: RunOptions) {
		this.#options = options;
		this.#scope = {
			environment: options.environment,
			fence: options.lease && encodeFence(options.lease.fence),
			refusal: () => this.#refusal,
		};
	}

	/** Runs until it is stopped, loses its lease, or fails. Never rejects. */
	async run(): Promise<RunEnd> {
		const { stop, lease } = this.#options;
		if (stop.aborted || lease?.signal.aborted) {
			return stop.aborted ? { kind: "stopped" } : { kind: "lease-lost" };
		}
		const onStop = () => this.#ending.resolve({ kind: "stopped" });
		const onLost = () => {
			this.#refusal = "the lease of its controller is lost";
			this.#ending.resolve({ kind: "lease-lost" });
			this.#lost.resolve();
		};
		const unlisten = [listen(stop, onStop), listen(lease?.signal, onLost)];
		this.#spawn(this.#start());
		const end = await this.#ending.promise;
		this.#endedAtMs = this.#options.environment.runtime.clock.monotonic();
		await this.#windDown(end);
		for (const remove of unlisten) {
			remove();
		}
		return end;
	}

	/** Ends the run as failed, if it has not ended yet. */
	fail(error: unknown): void {
		this.#ending.resolve({ kind: "failed", error });
	}

	/** The cache has seen what was written for the key. */
	release(key: string): void {
		this.#components?.reconciler.release(key);
	}

	/** When its end was decided, on the monotonic clock; what it took to wind down is not life. */
	get endedAtMs(): number | undefined {
		return this.#endedAtMs;
	}

	/** Reconciles that ignore their signal, by key, with their end. */
	get leftovers(): ReadonlyMap<string, Promise<void>> {
		return this.#components?.reconciler.pool.working ?? new Map();
	}

	state(): RunState | undefined {
		const components = this.#components;
		if (components === undefined) {
			return undefined;
		}
		const { reconciler, maps, events, cache, undecodable } = components;
		return {
			requests: reconciler.pool.state(),
			mappings: Object.fromEntries(
				[...maps, ...events].map(([name, { pool }]) => [name, pool.state()]),
			),
			cached: cache.stats(),
			stillRunning: reconciler.pool.stillRunning,
			overdue: reconciler.pool.overdue,
			undecodable: undecodable.state(),
		};
	}

	async #start(): Promise<void> {
		const { environment, onPhase, ownWrites } = this.#options;
		onPhase("initializing");
		await this.#initialize();
		this.#watching.signal.throwIfAborted();

		const components = createControllerComponents(this.#scope, ownWrites, this.#options.locked);
		this.#components = components;
		ownWrites.restart(components.updaters.map((updater) => updater.type.family));
		onPhase("priming");
		const priming = components.updaters.map((updater) =>
			primeCache(environment.client, updater, environment.logger, this.#watching.signal),
		);
		this.#background.push(Promise.allSettled(priming).then(() => {}));
		const versions = await Promise.all(priming);
		this.#watching.signal.throwIfAborted();

		onPhase("running");
		for (const [at, updater] of components.updaters.entries()) {
			const version = versions[at] ?? "";
			ownWrites.advance(updater.type.family, version);
			this.#spawn(this.#followWatch(components, updater, version));
		}
		for (const watch of environment.controller.watches) {
			if (watch.kind === "custom") {
				this.#spawn(this.#consume(components, watch));
			}
		}
		components.resync?.start();
		await enqueuePrimed(components, this.#watching.signal);
	}

	async #initialize(): Promise<void> {
		const { controller } = this.#options.environment;
		if (controller.initialize === undefined) {
			return;
		}
		const task = new Task("initialize");
		const unlisten = listen(this.#watching.signal, () => task.abort(this.#watching.signal.reason));
		const views = { cache: undefined, shared: undefined };
		const context = new WorkContext(this.#scope, task, views, () => {});
		try {
			await controller.initialize(context);
		} finally {
			await context.client.close();
			unlisten();
		}
	}

	async #followWatch(
		components: ControllerComponents,
		updater: CacheUpdater,
		version: string,
	): Promise<void> {
		const { environment, ownWrites } = this.#options;
		const { client, logger } = environment;
		const { family } = updater.type;
		await followWatch(
			{
				client,
				updater,
				logger,
				onChange: enqueueOnChange(components, environment, updater.type),
				onVersion: (seen) => ownWrites.advance(family, seen),
			},
			version,
			this.#watching.signal,
		);
	}

	async #consume(components: ControllerComponents, watch: CustomWatch): Promise<void> {
		const { cloningClient, logger, runtime } = this.#options.environment;
		const { signal } = this.#watching;
		const queue = components.events.get(watch.name);
		if (queue !== undefined) {
			const client = new RuntimeClient({
				...this.#scope,
				client: cloningClient,
				signal: () => signal,
				onWritten: () => {},
			});
			const context = { client, logger, clock: runtime.clock, signal };
			await consume(watch.source(context), signal, async ({ key, event }) => {
				queue.add(key, event);
				await queue.pool.room(readyLimit);
			});
		}
	}

	/** Runs something beside the rest; its failure ends the run. */
	#spawn(work: Promise<void>): void {
		this.#background.push(work.catch((error: unknown) => this.fail(error)));
	}

	async #windDown(end: RunEnd): Promise<void> {
		const { environment, onPhase } = this.#options;
		const { limits, logger, runtime } = environment;
		const { clock } = runtime;
		onPhase("stopping");
		const reason = new Error(`the run of controller ${environment.controller.name} has ended`);
		this.#watching.abort(reason);
		const components = this.#components;
		components?.resync?.stop();
		const pools = components === undefined ? [] : poolsOf(components);
		for (const pool of pools) {
			pool.stop();
		}
		if (end.kind === "stopped" && components !== undefined) {
			const finished = components.reconciler.pool.idle();
			await settlesWithin(clock, limits.stopFinishMs, Promise.race([finished, this.#lost.promise]));
		}
		for (const pool of pools) {
			pool.abort(reason);
		}
		const idle = pools.map((pool) => pool.idle());
		await settlesWithin(clock, limits.stopAbortMs, Promise.all([...idle, ...this.#background]));
		this.#refusal = "its run has ended";
		const stuck = [...this.leftovers.keys()];
		if (stuck.length > 0) {
			logger.error({ keys: stuck }, "reconciles ignored their signal and were left behind");
		}
	}
}

/** Calls back when the signal, which has not, aborts. Answers how to stop listening. */
function listen(signal: AbortSignal | undefined, onAbort: () => void): () => void {
	signal?.addEventListener("abort", onAbort, { once: true });
	return () => signal?.removeEventListener("abort", onAbort);
}
