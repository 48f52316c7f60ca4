import { type LeaseHold, sleep, unlessAborted } from "@plinth/runtime";
import { shardOf } from "../shards/shard-of.ts";
import type { ShardFollower } from "../shards/shards.ts";
import { whenCaughtUp } from "./catch-up.ts";
import type { ControllerComponents } from "./components.ts";
import { enqueuePrimed } from "./enqueue-changes.ts";
import type { OwnWrites } from "./own-writes.ts";
import type { RunEnvironment } from "./run-environment.ts";
import { settlesWithin } from "./settles-within.ts";
import type { ShardGate } from "./shard-gate.ts";

/** The options of the work on shards. */
export interface ShardWorkOptions {
	readonly environment: RunEnvironment;
	readonly gate: ShardGate;
	readonly components: ControllerComponents;
	readonly ownWrites: OwnWrites;
}

/** How long the shards that are gained at the same time are collected, in milliseconds, to be caught up on together. */
const collectMs = 50;

/** Begins and ends the work of a run on the shards that its server gains and loses. */
export class ShardWork implements ShardFollower {
	readonly #options: ShardWorkOptions;

	constructor(options: ShardWorkOptions) {
		this.#options = options;
	}

	gained(shard: number, hold: LeaseHold): void {
		this.#options.gate.gained(shard, hold);
	}

	async drain(shard: number): Promise<void> {
		const { environment, gate, components } = this.#options;
		const { limits, logger, runtime } = environment;
		const { pool } = components.reconciler;
		const matches = inShard(shard);
		const isDraining = gate.close(shard);
		components.reconciler.drop(matches);
		const ended = () =>
			Promise.all([...pool.working].filter(([key]) => matches(key)).map(([, end]) => end));
		const hasEnded = await settlesWithin(runtime.clock, limits.stopFinishMs, ended());
		// It may have been lost meanwhile, and gained again: then this is over.
		if (hasEnded || !isDraining()) {
			return;
		}
		pool.abort(new Error(`shard ${shard} moves to another server`), matches);
		if (!(await settlesWithin(runtime.clock, limits.stopAbortMs, ended())) && isDraining()) {
			const keys = [...pool.working.keys()].filter(matches);
			logger.error({ shard, keys }, "reconciles ignored their signal and did not end in time");
		}
	}

	lost(shard: number): void {
		const { gate, components } = this.#options;
		const { pool } = components.reconciler;
		gate.lost(shard);
		components.reconciler.drop(inShard(shard));
		pool.abort(new Error(`the lease of shard ${shard} is lost`), inShard(shard));
	}

	/** Requests what was requested while these shards were waiting, of which some may not be stored any more. */
	requestRefused(shards: Iterable<number>): void {
		const { gate, components } = this.#options;
		for (const id of gate.takeRefused(shards)) {
			components.reconciler.enqueue(id, "live");
		}
	}

	/**
	 * Opens the shards that are gained while the run goes on: each once the cache contains what its former holders
	 * wrote. Then all its resources are requested, as if they had just been primed.
	 *
	 * @param spawn - runs work in the background.
	 * @throws the signal's reason; Error if the cache does not catch up in time.
	 */
	async openLater(signal: AbortSignal, spawn: (work: Promise<void>) => void): Promise<never> {
		const { environment, gate, components, ownWrites } = this.#options;
		const types = components.updaters.map(({ type }) => type);
		for (;;) {
			await unlessAborted(gate.someWaiting, signal);
			await sleep(environment.runtime.clock, collectMs, signal);
			const { waiting } = gate;
			await whenCaughtUp(environment, types, ownWrites, signal);
			const opened = gate.openShards(waiting);
			if (opened.size > 0) {
				environment.logger.debug({ shards: [...opened] }, "began to work on shards");
				this.requestRefused(opened);
				spawn(enqueuePrimed(components, environment, signal, opened));
			}
		}
	}
}

function inShard(shard: number): (key: string) => boolean {
	return (key) => shardOf(key) === shard;
}
