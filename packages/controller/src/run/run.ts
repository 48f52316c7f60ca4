import type { TypeStats } from "@plinth/cache";
import { idOf, nameKey } from "@plinth/resource";
import { encodeFence, type Fence } from "@plinth/runtime";
import { RuntimeClient } from "../client/runtime-client.ts";
import type { Share } from "../define/share.ts";
import type { CustomWatch } from "../define/watch.ts";
import type { QueueState } from "../queue/merging-queue.ts";
import { Task } from "../queue/task.ts";
import type { PooledKey, RunningWork } from "../queue/worker-pool.ts";
import { shardCount } from "../shards/shard-of.ts";
import type { Shards } from "../shards/shards.ts";
import type { CacheUpdater } from "./cache-updater.ts";
import { whenAllElseCaughtUp } from "./catch-up.ts";
import { type ControllerComponents, createControllerComponents, poolsOf } from "./components.ts";
import { consume } from "./custom-events.ts";
import { enqueueOnChange, enqueuePrimed, readyLimit } from "./enqueue-changes.ts";
import { followWatch } from "./follow-watch.ts";
import type { OwnWrites } from "./own-writes.ts";
import type { Phase } from "./phase.ts";
import { primeCache } from "./prime-cache.ts";
import type { RunEnvironment } from "./run-environment.ts";
import { settlesWithin } from "./settles-within.ts";
import { ShardGate } from "./shard-gate.ts";
import { ShardWork } from "./shard-work.ts";
import type { UndecodableState } from "./undecodable.ts";
import { WorkContext, type WorkScope } from "./work-context.ts";

/** Why a run ended. */
export type RunEnd =
	| { readonly kind: "stopped" }
	| { readonly kind: "lease-lost" }
	| { readonly kind: "failed"; readonly error: unknown };

/** The options of one run. */
export interface RunOptions {
	readonly environment: RunEnvironment;
	readonly ownWrites: OwnWrites;
	/** Ends the run gracefully. */
	readonly stop: AbortSignal;
	/** The lease that the run holds: losing it ends the run immediately. */
	readonly lease: { readonly signal: AbortSignal; readonly fence: Fence } | undefined;
	/** The shards of the server, if the controller is sharded and there are others to share with. */
	readonly shards: Shards | undefined;
	/** Keys that an earlier run is still processing, with the end of that work. */
	readonly locked: ReadonlyMap<string, Promise<void>>;
	readonly onPhase: (phase: Phase) => void;
}

/** The state of a run's queues and cache. */
export interface RunState {
	readonly requests: QueueState;
	/** The mapping queues, by watched type or by name of a custom watch. */
	readonly mappings: Readonly<Record<string, QueueState>>;
	readonly cached: readonly TypeStats[];
	/** Reconciles that have been running for longer than `slowReconcileMs`, the longest-running first. */
	readonly stillRunning: readonly RunningWork[];
	/** Keys whose reconcile has exceeded its time limit and has not ended. */
	readonly overdue: readonly string[];
	/** Cached resources that can't be decoded. */
	readonly undecodable: UndecodableState;
	/** The shards that it works on, of how many, if it is sharded among servers. */
	readonly shards: { readonly open: readonly number[]; readonly count: number } | undefined;
}

/** Keys that a run works on. */
export interface RunWork {
	/** Those that failed when they were reconciled last, the longest-failing first. */
	readonly failing: readonly PooledKey[];
	/** Those that are being reconciled, the longest-running first. */
	readonly running: readonly PooledKey[];
}

/**
 * One run of a controller, in five steps:
 *
 * 1. Initialize.
 * 2. Create the cache, new and empty. (The cache of an earlier run is never reused.)
 * 3. Prime: open a watch per type, concurrently; their snapshots fill the cache. The queues exist, but
 *    stay empty.
 * 4. Run, once the last priming watch has ended: open a watch per type, resumed after the version of its
 *    snapshot. All cached resources are enqueued; those of watched types are mapped before the first of the managed
 *    ones is reconciled, unless it changes.
 * 5. From then on, each event is applied to the cache and then enqueued.
 *
 * The first event that ends the run determines how: a stop lets reconciles finish; a failure aborts them; a
 * lost lease aborts them and refuses their writes. A sharded controller begins and ends work on shards while it runs
 * (shard-work.ts). After `run` has resolved, only reconciles that ignore
 * their signal (`orphans`) may still be running, and their writes are refused.
 */
export class Run {
	readonly #options: RunOptions;
	readonly #ending = Promise.withResolvers<RunEnd>();
	/** Resolves when the lease is lost, even if the run is already ending. */
	readonly #lost = Promise.withResolvers<void>();
	/** Ends watches, sources and the initializer. */
	readonly #watching = new AbortController();
	readonly #background: Promise<void>[] = [];
	readonly #scope: WorkScope;
	#refusal: string | undefined;
	#endedAtMs: number | undefined;
	#components: ControllerComponents | undefined;
	readonly #gate: ShardGate | undefined;
	#unfollowShards: () => void = () => {};

	constructor(options: RunOptions) {
		this.#options = options;
		this.#scope = {
			environment: options.environment,
			hold: { fence: options.lease?.fence },
			fence: options.lease && encodeFence(options.lease.fence),
			refusal: () => this.#refusal,
		};
		this.#gate = options.shards && new ShardGate(this.#scope);
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
		await this.#shutDown(end);
		this.#unfollowShards();
		for (const remove of unlisten) {
			remove();
		}
		return end;
	}

	/** Ends the run as failed, if it has not ended yet. */
	fail(error: unknown): void {
		this.#ending.resolve({ kind: "failed", error });
	}

	/** The cache contains all writes of the key. */
	release(key: string): void {
		this.#components?.reconciler.release(key);
	}

	/** When it was decided to end the run, on the monotonic clock; excludes the time to shut down. */
	get endedAtMs(): number | undefined {
		return this.#endedAtMs;
	}

	/** The end of each reconcile that ignores its signal, by key. */
	get orphans(): ReadonlyMap<string, Promise<void>> {
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
			shards: this.#gate && { open: this.#gate.open, count: shardCount },
		};
	}

	/** The keys that fail and those that are being reconciled, up to `limit` of each. */
	work(limit: number): RunWork {
		const pool = this.#components?.reconciler.pool;
		return { failing: pool?.failing(limit) ?? [], running: pool?.running(limit) ?? [] };
	}

	/** What it does with a key: `idle` if nothing, `elsewhere` if another server does. */
	keyWork(key: string): PooledKey | "idle" | "elsewhere" {
		const state = this.#components?.reconciler.pool.keyState(key);
		return state ?? (this.#gate?.holdOf(key) === undefined && this.#gate ? "elsewhere" : "idle");
	}

	async #start(): Promise<void> {
		const { environment, onPhase, ownWrites } = this.#options;
		onPhase("initializing");
		await this.#initialize();
		this.#watching.signal.throwIfAborted();

		const components = createControllerComponents(
			this.#scope,
			ownWrites,
			this.#options.locked,
			this.#gate,
		);
		this.#components = components;
		// What former holders of these wrote is in the snapshots that prime the cache.
		const primed = this.#followShards(components);
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
		if (primed === undefined) {
			await enqueuePrimed(components, environment, this.#watching.signal);
			return;
		}
		if (primed.holds.size > 0) {
			await whenAllElseCaughtUp(environment, this.#watching.signal);
		}
		const opened = this.#gate?.openShards(primed.holds) ?? new Set();
		primed.work.requestRefused(opened);
		this.#spawn(primed.work.openLater(this.#watching.signal, (work) => this.#spawn(work)));
		if (opened.size > 0) {
			await enqueuePrimed(components, environment, this.#watching.signal, opened);
		}
	}

	/** From now on, work on the shards that the server gains; returns those that it holds. */
	#followShards(components: ControllerComponents) {
		const { environment, ownWrites, shards } = this.#options;
		if (shards === undefined || this.#gate === undefined) {
			return undefined;
		}
		const work = new ShardWork({ environment, gate: this.#gate, components, ownWrites });
		const { holds, unfollow } = shards.follow(work);
		this.#unfollowShards = unfollow;
		for (const [shard, hold] of holds) {
			work.gained(shard, hold);
		}
		return { work, holds };
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
				controller: this.#options.environment.controller.name,
				signal: () => signal,
				onWritten: () => {},
			});
			const context = { client, logger, clock: runtime.clock, share: this.#share(), signal };
			await consume(watch.source(context), signal, async ({ key, event }) => {
				queue.add(key, event);
				await queue.pool.room(readyLimit);
				await runtime.scheduler.turn();
			});
		}
	}

	#share(): Share {
		const { manages } = this.#options.environment.controller;
		const gate = this.#gate;
		return gate === undefined
			? { holdOf: () => this.#scope.hold, onChange: () => () => {} }
			: {
					holdOf: ({ name, tenancy }) => gate.holdOf(nameKey(idOf(manages, name, tenancy))),
					onChange: (listener) => gate.onChange(listener),
				};
	}

	/** Runs work in the background; its failure ends the run. */
	#spawn(work: Promise<void>): void {
		this.#background.push(work.catch((error: unknown) => this.fail(error)));
	}

	async #shutDown(end: RunEnd): Promise<void> {
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
		this.#refusal = "the run of its controller has ended";
		const stuck = [...this.orphans.keys()];
		if (stuck.length > 0) {
			logger.error({ keys: stuck }, "reconciles ignored their signal and did not end in time");
		}
	}
}

/** Calls back when the signal, which must not have aborted yet, aborts. Returns a function that stops listening. */
function listen(signal: AbortSignal | undefined, onAbort: () => void): () => void {
	signal?.addEventListener("abort", onAbort, { once: true });
	return () => signal?.removeEventListener("abort", onAbort);
}
