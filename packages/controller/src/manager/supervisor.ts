import type { ID } from "@plinth/proto";
import { familyKey, nameKey } from "@plinth/resource";
import { backoffDelayMs, type LeaseHold, sleep } from "@plinth/runtime";
import { messageOf, stackOf } from "../queue/error-message.ts";
import { OwnWrites } from "../run/own-writes.ts";
import type { Phase } from "../run/phase.ts";
import { Run, type RunEnd, type RunWork } from "../run/run.ts";
import type { RunEnvironment } from "../run/run-environment.ts";
import type { Shards } from "../shards/shards.ts";
import type { ControllerState, ReconcileState, RunError } from "./controller-state.ts";
import type { SharedLease } from "./shared-lease.ts";

/**
 * Keeps one controller running, independently of the others. A failed run is followed by another:
 * immediately if it was in `running` for long enough, otherwise after a backoff with jitter: one that fails while it
 * initializes or primes never was, however long that takes. A singleton runs while the server holds the lease; losing
 * it ends the run, and the backoff.
 */
export class Supervisor {
	readonly #environment: RunEnvironment;
	readonly #lease: SharedLease | undefined;
	readonly #shards: Shards | undefined;
	readonly #firstRunning = Promise.withResolvers<void>();
	readonly #ownWrites: OwnWrites;
	/** The reconciles that have outlived their run, by key. */
	readonly #orphaned = new Map<string, Promise<void>>();
	#run: Run | undefined;
	#phase: Phase = "created";
	#phaseSinceMs: number;
	#restarts = 0;
	/** Consecutive failures of runs that were not in `running` for long enough. */
	#failures = 0;
	#lastError: RunError | undefined;

	/**
	 * `lease` is the lease that the controller needs in order to run, and `shards` are those that it works on, if it is
	 * sharded among servers.
	 */
	constructor(
		environment: RunEnvironment,
		{ lease, shards }: { readonly lease?: SharedLease; readonly shards?: Shards },
	) {
		const { runtime, limits } = environment;
		this.#environment = environment;
		this.#lease = lease;
		this.#shards = shards;
		this.#phaseSinceMs = runtime.clock.monotonic();
		this.#ownWrites = new OwnWrites({
			clock: runtime.clock,
			limitMs: limits.ownWritesMs,
			onCaughtUp: (key) => this.#run?.release(key),
			onLimit: (error) => this.#run?.fail(error),
		});
	}

	get name(): string {
		return this.#environment.controller.name;
	}

	/** Runs until the signal aborts; everything has ended when it resolves. Never rejects. */
	async run(stop: AbortSignal): Promise<void> {
		const releaseShards = new AbortController();
		const shardsReleased = this.#shards?.run(this.#firstRunning.promise, releaseShards.signal);
		await this.#runUntil(stop);
		releaseShards.abort(stop.reason);
		await shardsReleased;
		this.#enter("stopped");
	}

	async #runUntil(stop: AbortSignal): Promise<void> {
		while (!stop.aborted) {
			const hold = await this.#takeLease(stop);
			if (stop.aborted) {
				break;
			}
			const end = await this.#runOnce(stop, hold);
			if (end.kind === "failed") {
				await this.#backOff(stop, hold);
			} else {
				this.#failures = 0;
			}
		}
	}

	state(): ControllerState {
		const { controller, runtime } = this.#environment;
		return {
			name: controller.name,
			manages: controller.manages.key,
			watches: controller.watches.map((watch) =>
				watch.kind === "resources" ? watch.type.key : watch.name,
			),
			placement: controller.placement,
			phase: this.#phase,
			inPhaseMs: runtime.clock.monotonic() - this.#phaseSinceMs,
			restarts: this.#restarts,
			lastError: this.#lastError,
			run: this.#run?.state(),
			reconciles: this.#environment.tally.counts(),
			ownWrites: this.#ownWrites.metrics(),
			orphaned: [...this.#orphaned.keys()],
		};
	}

	/** The keys that fail and those that are being reconciled, up to `limit` of each; none unless it is running. */
	work(limit: number): RunWork {
		return this.#run?.work(limit) ?? { failing: [], running: [] };
	}

	/** Whether a resource is of the managed type, in any of its versions. */
	manages({ type }: ID): boolean {
		return type !== undefined && familyKey(type) === this.#environment.controller.manages.family;
	}

	/** What the controller does with a managed resource. */
	reconcileOf(id: ID): ReconcileState {
		const { name } = this.#environment.controller;
		const key = nameKey(id);
		const waitsForLease = this.#phase === "waiting-for-lease";
		const work = this.#run?.keyWork(key) ?? (waitsForLease ? "elsewhere" : "stopped");
		return { controller: name, key, work, isOrphaned: this.#orphaned.has(key) };
	}

	async #takeLease(stop: AbortSignal): Promise<LeaseHold | undefined> {
		if (this.#lease === undefined) {
			return undefined;
		}
		this.#enter("waiting-for-lease");
		return this.#lease.whenHeld(stop).catch(() => undefined);
	}

	async #runOnce(stop: AbortSignal, lease: LeaseHold | undefined): Promise<RunEnd> {
		const { limits, logger, runtime } = this.#environment;
		const startedMs = runtime.clock.monotonic();
		let runningSinceMs = Number.POSITIVE_INFINITY;
		const run = new Run({
			environment: this.#environment,
			ownWrites: this.#ownWrites,
			stop,
			lease,
			shards: this.#shards,
			locked: new Map(this.#orphaned),
			onPhase: (phase) => {
				this.#enter(phase);
				if (phase === "running") {
					runningSinceMs = this.#phaseSinceMs;
				}
			},
		});
		this.#run = run;
		const end = await run.run();
		this.#run = undefined;
		this.#ownWrites.restart([]);
		this.#keepOrphans(run);
		const endedMs = run.endedAtMs ?? runtime.clock.monotonic();
		const lifeMs = Math.round(endedMs - startedMs);
		if (end.kind === "failed") {
			this.#restarts += 1;
			const wasHealthy = endedMs - runningSinceMs >= limits.healthyMs;
			this.#failures = wasHealthy ? 0 : this.#failures + 1;
			this.#lastError = runError(end.error, runtime.clock.now());
			logger.error({ err: end.error, lifeMs, restarts: this.#restarts }, "controller run failed");
		} else {
			logger.info({ lifeMs }, end.kind === "stopped" ? "controller stopped" : "lost the lease");
		}
		return end;
	}

	#keepOrphans(run: Run): void {
		for (const [key, ended] of run.orphans) {
			this.#orphaned.set(key, ended);
			void ended.then(() => {
				if (this.#orphaned.get(key) === ended) {
					this.#orphaned.delete(key);
				}
			});
		}
	}

	/** Waits before the next run; the wait ends early if the lease is lost or the manager stops. */
	async #backOff(stop: AbortSignal, lease: LeaseHold | undefined): Promise<void> {
		if (this.#failures === 0) {
			return;
		}
		const { limits, runtime, logger } = this.#environment;
		const policy = { baseMs: limits.restartBaseMs, maxMs: limits.restartMaxMs };
		const jitter = 1 + runtime.random.next();
		const delayMs = Math.min(policy.maxMs, backoffDelayMs(policy, this.#failures) * jitter);
		this.#enter("backing-off");
		logger.info({ delayMs: Math.round(delayMs) }, "restarting the controller after a delay");
		const ends = lease === undefined ? stop : AbortSignal.any([stop, lease.signal]);
		await sleep(runtime.clock, delayMs, ends).catch(() => {
			this.#failures = 0;
		});
	}

	#enter(phase: Phase): void {
		this.#phase = phase;
		if (phase === "running") {
			this.#firstRunning.resolve();
		}
		this.#phaseSinceMs = this.#environment.runtime.clock.monotonic();
	}
}

function runError(error: unknown, atMs: number): RunError {
	return { message: messageOf(error), stack: stackOf(error), atMs };
}
