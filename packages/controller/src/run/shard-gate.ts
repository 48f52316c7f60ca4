import type { ID } from "@plinth/proto";
import { encodeFence, type LeaseHold } from "@plinth/runtime";
import type { WorkHold } from "../define/share.ts";
import { shardOf } from "../shards/shard-of.ts";
import type { WorkScope } from "./work-context.ts";

interface HeldShard {
	readonly hold: LeaseHold;
	/** For the work on keys of the shard: fenced by this hold, and refused when it has ended. */
	readonly scope: WorkScope;
	state: "waiting" | "open" | "draining" | "lost";
	/** What was requested while it was waiting, by key. */
	readonly refused: Map<string, ID>;
}

/**
 * Which keys a run of a sharded controller may work on now. The states of a shard:
 *
 * ```
 *   (absent) ──gained──▶ waiting ──the cache has what former holders wrote──▶ open
 *      ▲                    │ lost                                            │ │
 *      ├────────────────────┘◀───────────────────lost─────────────────────────┘ │
 *      └──────────lost────────── draining ◀───────────────close─────────────────┘
 * ```
 *
 * Invariants:
 * - Work on a key begins only while its shard is open, so with a cache that contains all that former holders have
 *   written for the key.
 * - The writes of that work carry the fence of the hold under which it began. Once that hold has ended they are
 *   refused, even if the server holds the shard again.
 */
export class ShardGate {
	readonly #run: WorkScope;
	readonly #shards = new Map<number, HeldShard>();
	/** Resolves when a shard is waiting. */
	#someWaiting = Promise.withResolvers<void>();
	readonly #listeners = new Set<() => void>();

	/** @param run - the scope of all work of the run. */
	constructor(run: WorkScope) {
		this.#run = run;
	}

	/** Whether work on the key may begin. */
	admits(key: string): boolean {
		return this.scopeOf(key) !== undefined;
	}

	/** The scope of work on the key that begins now; `undefined` if none may begin. */
	scopeOf(key: string): WorkScope | undefined {
		const shard = this.#shards.get(shardOf(key));
		return shard?.state === "open" && !shard.hold.signal.aborted ? shard.scope : undefined;
	}

	/** The hold under which work on the key may begin now, or once its shard is opened. */
	holdOf(key: string): WorkHold | undefined {
		const shard = this.#shards.get(shardOf(key));
		const isOwn = shard?.state === "open" || shard?.state === "waiting";
		return isOwn && !shard.hold.signal.aborted ? shard.scope.hold : undefined;
	}

	/** Calls the listener when shards are gained or given up, until the returned function is called. */
	onChange(listener: () => void): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	/** Work on the key was requested and may not begin yet: it is requested again when its shard is opened. */
	refuse(key: string, id: ID): void {
		const shard = this.#shards.get(shardOf(key));
		if (shard?.state === "waiting") {
			shard.refused.set(key, id);
		}
	}

	/** What was requested while these shards were waiting. It is forgotten then. */
	takeRefused(shards: Iterable<number>): readonly ID[] {
		const ids: ID[] = [];
		for (const shard of shards) {
			const refused = this.#shards.get(shard)?.refused;
			ids.push(...(refused?.values() ?? []));
			refused?.clear();
		}
		return ids;
	}

	/** The shards whose keys are worked on now. */
	get open(): readonly number[] {
		const open = [...this.#shards].filter(([, { state }]) => state === "open");
		return open.map(([shard]) => shard).sort((a, b) => a - b);
	}

	/** The shards that wait to be opened, with their holds. */
	get waiting(): ReadonlyMap<number, LeaseHold> {
		const waiting = [...this.#shards].filter(([, { state }]) => state === "waiting");
		return new Map(waiting.map(([shard, { hold }]) => [shard, hold]));
	}

	/** Resolves when a shard is waiting, or has waited since the last call. */
	get someWaiting(): Promise<void> {
		return this.#someWaiting.promise;
	}

	/** The server holds the shard. */
	gained(shard: number, hold: LeaseHold): void {
		const { environment, refusal } = this.#run;
		const held: HeldShard = {
			hold,
			scope: {
				environment,
				hold: { fence: hold.fence },
				fence: encodeFence(hold.fence),
				refusal: () =>
					refusal() ??
					(held.state === "lost" || hold.signal.aborted
						? `the lease of shard ${shard} is lost`
						: undefined),
			},
			state: "waiting",
			refused: new Map(),
		};
		this.#shards.set(shard, held);
		this.#someWaiting.resolve();
		this.#changed();
	}

	/**
	 * Opens shards that still wait under the same hold. The cache must contain all that was committed before the holds
	 * began.
	 *
	 * @returns those that are open now.
	 */
	openShards(holds: ReadonlyMap<number, LeaseHold>): ReadonlySet<number> {
		const opened = new Set<number>();
		for (const [shard, hold] of holds) {
			const held = this.#shards.get(shard);
			if (held?.hold === hold && held.state === "waiting") {
				held.state = "open";
				opened.add(shard);
			}
		}
		if (this.waiting.size === 0) {
			this.#someWaiting = Promise.withResolvers();
		}
		return opened;
	}

	/**
	 * Begins no more work on the shard.
	 *
	 * @returns whether it is still being drained under the same hold.
	 */
	close(shard: number): () => boolean {
		const held = this.#shards.get(shard);
		if (held !== undefined) {
			held.state = "draining";
			this.#changed();
		}
		return () => held !== undefined && this.#shards.get(shard) === held;
	}

	/** Refuses what is left of the work on the shard. */
	lost(shard: number): void {
		const held = this.#shards.get(shard);
		if (held !== undefined) {
			held.state = "lost";
			this.#shards.delete(shard);
			this.#changed();
		}
	}

	#changed(): void {
		// Neither other listeners nor the shards of other controllers depend on it.
		const onFailure = (err: unknown) =>
			this.#run.environment.logger.error({ err }, "a listener of `share.onChange` failed");
		// Those that are added meanwhile wait for the next change: the loop must end even if each call adds one.
		for (const listener of [...this.#listeners]) {
			if (!this.#listeners.has(listener)) {
				continue;
			}
			try {
				// It may be an async function.
				const returned: unknown = listener();
				if (returned instanceof Promise) {
					returned.catch(onFailure);
				}
			} catch (error) {
				onFailure(error);
			}
		}
	}
}
