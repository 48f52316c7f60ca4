import {
	aborted,
	type Clock,
	type LeaseHold,
	type LeaseManager,
	type Logger,
	type Random,
	sleep,
	unlessAborted,
} from "@plinth/runtime";
import { assignShards } from "./assign-shards.ts";
import { serverLeasePrefix, shardLeaseName } from "./shard-leases.ts";
import { shardCount } from "./shard-of.ts";

/** A run of a controller that works on the shards which its server holds. */
export interface ShardFollower {
	/** The server holds the shard from now on. */
	gained(shard: number, hold: LeaseHold): void;
	/** Begins no more work on the shard, and resolves when none is left or its time is over. */
	drain(shard: number): Promise<void>;
	/** The server no longer holds the shard, or is about to release it: whatever is left of its work is refused. */
	lost(shard: number): void;
}

/** The options of the shards of a server. */
export interface ShardsOptions {
	readonly leases: LeaseManager;
	/** The names of the leases begin with it. */
	readonly name: string;
	readonly clock: Clock;
	readonly random: Random;
	readonly logger: Logger;
}

/** The delay before the next attempt after an error of the lease manager, in milliseconds. */
const retryMs = 1_000;

/**
 * The shards of one controller that a server holds, of those that all servers which run it divide among themselves.
 * Each of them has a lease of its own, which shows the others that it runs the controller, and each shard has one, which
 * its holder's writes are fenced by:
 *
 * ```
 *   <name>-server-<random>   held by each server that has joined
 *   <name>-shard-<number>    held by the server that works on the shard
 *
 *   not wanted ──the assignment says so──▶ acquiring ──▶ held ──lease lost──▶ acquiring again
 *       ▲                                                  │ not wanted any more
 *       └──────────────── released ◀───── draining ◀───────┘
 * ```
 *
 * Servers see changes of the others at different times, and may want one shard at the same time. That delays its
 * move, no more: the lease decides who works on it, and it is released when that work has ended.
 */
export class Shards {
	readonly #options: ShardsOptions;
	readonly #id: string;
	readonly #holds = new Map<number, LeaseHold>();
	readonly #followers = new Set<ShardFollower>();
	#wanted: ReadonlySet<number> = new Set();
	/** The servers that have joined, as of the last assignment. */
	#servers: ReadonlySet<string> = new Set();
	/** Called when `#wanted` or `#hasView` has changed. */
	readonly #waiters = new Set<() => void>();
	/** Whether the other servers are known now. */
	#hasView = false;

	constructor(options: ShardsOptions) {
		this.#options = options;
		this.#id = Math.floor(options.random.next() * 2 ** 48)
			.toString(16)
			.padStart(12, "0");
	}

	/**
	 * Tells a run of all changes, until the returned function is called.
	 *
	 * @returns also the shards that are held now.
	 */
	follow(follower: ShardFollower): {
		readonly holds: ReadonlyMap<number, LeaseHold>;
		readonly unfollow: () => void;
	} {
		this.#followers.add(follower);
		return { holds: new Map(this.#holds), unfollow: () => this.#followers.delete(follower) };
	}

	/**
	 * Joins once the controller is ready, takes part until the signal aborts, and then releases everything. By then, the
	 * controller must not be running any more.
	 */
	async run(ready: Promise<unknown>, signal: AbortSignal): Promise<void> {
		await unlessAborted(ready, signal).catch(() => {});
		const numbers = Array.from({ length: shardCount }, (_, shard) => shard);
		await Promise.all([
			this.#join(signal),
			this.#observe(signal),
			...numbers.map((shard) => this.#take(shard, signal)),
		]);
	}

	/** Holds the lease of this server, while it knows the others: otherwise it would not take its shards. */
	async #join(signal: AbortSignal): Promise<void> {
		while (!signal.aborted) {
			await this.#until(() => this.#hasView, signal);
			const hold = await this.#acquire(`${this.#serverPrefix}${this.#id}`, signal);
			if (hold !== undefined) {
				await this.#until(() => !this.#hasView, hold.signal, signal);
				await this.#release(hold, signal);
			}
		}
	}

	/** Follows which servers there are. */
	async #observe(signal: AbortSignal): Promise<void> {
		const { leases, clock, logger } = this.#options;
		while (!signal.aborted) {
			try {
				for await (const names of leases.held(this.#serverPrefix, signal)) {
					const servers = new Set([...names].map((name) => name.slice(this.#serverPrefix.length)));
					// Most changes are of the leases of shards.
					if (!this.#hasView || servers.symmetricDifference(this.#servers).size > 0) {
						this.#hasView = true;
						this.#assign(servers);
					}
				}
			} catch (err) {
				if (!signal.aborted) {
					this.#hasView = false;
					this.#assign(new Set());
					logger.warn({ err }, "could not observe which servers share the shards");
					await sleep(clock, retryMs, signal).catch(() => {});
				}
			}
		}
	}

	/** @param servers - all that have joined; none if they are not known. */
	#assign(servers: ReadonlySet<string>): void {
		this.#servers = servers;
		const own = [...assignShards(servers)].filter(([, server]) => server === this.#id);
		const wanted = new Set(own.map(([shard]) => shard));
		if (wanted.symmetricDifference(this.#wanted).size > 0) {
			const { logger } = this.#options;
			// A server without others has all shards, which is no news.
			const level = servers.size === 1 ? "debug" : "info";
			logger[level](
				{ shards: [...wanted].sort((a, b) => a - b), servers: servers.size },
				"the shards of this server have changed",
			);
			this.#wanted = wanted;
		}
		for (const wake of [...this.#waiters]) {
			wake();
		}
	}

	/** Holds a shard while this server wants it. */
	async #take(shard: number, signal: AbortSignal): Promise<void> {
		for (;;) {
			await this.#until(() => this.#wanted.has(shard), signal);
			if (signal.aborted) {
				return;
			}
			const unwanted = new AbortController();
			const settled = new AbortController();
			void this.#until(() => !this.#wanted.has(shard), signal, settled.signal).then(() =>
				unwanted.abort(new Error(`shard ${shard} belongs to another server`)),
			);
			const hold = await this.#acquire(shardLeaseName(this.#options.name, shard), unwanted.signal);
			if (hold !== undefined) {
				await this.#work(shard, hold, unwanted.signal);
				await this.#release(hold, signal);
			}
			settled.abort();
		}
	}

	/** Lets the controllers work on a shard until it is lost or not wanted any more. */
	async #work(shard: number, hold: LeaseHold, unwanted: AbortSignal): Promise<void> {
		if (hold.signal.aborted) {
			return;
		}
		this.#holds.set(shard, hold);
		for (const follower of this.#followers) {
			follower.gained(shard, hold);
		}
		await aborted(hold.signal, unwanted);
		// A run that starts from now on does not work on it.
		this.#holds.delete(shard);
		if (!hold.signal.aborted) {
			const drained = Promise.all([...this.#followers].map((each) => each.drain(shard)));
			await Promise.race([drained, aborted(hold.signal)]);
		}
		for (const follower of this.#followers) {
			follower.lost(shard);
		}
	}

	/** Resolves when the condition holds, or one of the signals has aborted. */
	#until(condition: () => boolean, ...signals: readonly AbortSignal[]): Promise<void> {
		return new Promise((resolve) => {
			const wake = () => {
				if (signals.some((signal) => signal.aborted) || condition()) {
					this.#waiters.delete(wake);
					for (const signal of signals) {
						signal.removeEventListener("abort", wake);
					}
					resolve();
				}
			};
			this.#waiters.add(wake);
			for (const signal of signals) {
				signal.addEventListener("abort", wake);
			}
			wake();
		});
	}

	async #acquire(name: string, signal: AbortSignal): Promise<LeaseHold | undefined> {
		const { leases, clock, logger } = this.#options;
		try {
			return await leases.acquire(name, signal);
		} catch (err) {
			if (!signal.aborted) {
				logger.warn({ lease: name, err }, "failed to acquire a lease");
				await sleep(clock, retryMs, signal).catch(() => {});
			}
			return undefined;
		}
	}

	/** Ends a hold. After one that was lost, it waits before the lease is acquired again. */
	async #release(hold: LeaseHold, signal: AbortSignal): Promise<void> {
		const { clock, logger } = this.#options;
		const isLost = hold.signal.aborted;
		try {
			await hold.release();
		} catch (err) {
			logger.warn({ lease: hold.fence.lease, err }, "failed to release a lease");
		}
		if (isLost) {
			await sleep(clock, retryMs, signal).catch(() => {});
		}
	}

	get #serverPrefix(): string {
		return serverLeasePrefix(this.#options.name);
	}
}
