import {
	aborted,
	type Clock,
	type LeaseHold,
	type LeaseManager,
	type Logger,
	RenewedHold,
	silentLogger,
	systemRuntime,
	type TimedLeases,
} from "@plinth/runtime";
import { EtcdClient } from "../client/etcd-client.ts";
import { defaultPrefix, type EtcdOptions } from "../client/etcd-options.ts";
import { Keys } from "../keys.ts";
import { EtcdTimedLeases } from "./etcd-timed-leases.ts";
import { type LeaseKey, LeaseKeys } from "./lease-keys.ts";

/** Options of leases from etcd. */
export interface EtcdLeasesOptions extends EtcdOptions {
	/**
	 * The time to live of a lease, in seconds: 10 by default; at least 2, since etcd rounds shorter ones
	 * up. A holder that can't renew it stops after 80 % of that time.
	 */
	readonly ttlSeconds?: number;
	/** The name of the holder, stored with the lease for people to read. */
	readonly holder?: string;
	/**
	 * When it aborts, all holds end and no lease is granted: pass `historyLost` of the storage that checks the fences.
	 */
	readonly signal?: AbortSignal;
}

const defaultTtlSeconds = 10;
const leastTtlSeconds = 2;

/**
 * Leases that servers of one cluster share, held by one of them at a time.
 *
 * A lease is a key, `<prefix>/elections/<name>`, attached to an etcd lease. The server that creates the key
 * holds the lease until the key is deleted with its etcd lease, which ends when it is revoked or not renewed
 * for its time to live. Other servers watch the key and try to create it when it is deleted. The revision that
 * created the key identifies the hold and is the token of the fence: a commit with a fence compares it in its
 * own transaction. So a fence is invalid as soon as its hold ends, even before the next holder.
 */
export class EtcdLeases implements LeaseManager {
	/** Leases of the same names for processes that are not servers of the cluster. */
	readonly timed: TimedLeases;
	readonly #client: EtcdClient;
	readonly #keys: LeaseKeys;
	readonly #clock: Clock;
	readonly #logger: Logger;
	readonly #ttlMs: number;
	readonly #holder: string;
	readonly #closing = new AbortController();
	readonly #signal: AbortSignal;
	readonly #holds = new Set<RenewedHold>();

	constructor(options: EtcdLeasesOptions) {
		const {
			runtime = systemRuntime,
			logger = silentLogger,
			ttlSeconds = defaultTtlSeconds,
		} = options;
		if (!(Number.isInteger(ttlSeconds) && ttlSeconds >= leastTtlSeconds)) {
			throw new RangeError(
				`the TTL of a lease must be a whole number of seconds, ${leastTtlSeconds} or more, got ${ttlSeconds}`,
			);
		}
		this.#ttlMs = ttlSeconds * 1000;
		// A renewal that takes longer is retried in time, at another member.
		this.#client = new EtcdClient({ ...options, requestTimeoutMs: this.#ttlMs / 4 });
		const { clock, random } = runtime;
		this.#clock = clock;
		this.#logger = logger;
		this.#keys = new LeaseKeys({
			...{ client: this.#client, keys: new Keys(options.prefix ?? defaultPrefix) },
			...{ clock, random, logger, ttlSeconds },
		});
		this.#holder = options.holder ?? `process ${process.pid}`;
		this.#signal = options.signal ?? new AbortController().signal;
		this.#signal.addEventListener("abort", () => void this.#releaseAll(), { once: true });
		this.timed = new EtcdTimedLeases({
			...{ keys: this.#keys, ttlMs: this.#ttlMs, logger },
			end: AbortSignal.any([this.#closing.signal, this.#signal]),
		});
	}

	/** Waits without a limit, even while etcd is unreachable. */
	async acquire(name: string, signal: AbortSignal): Promise<LeaseHold> {
		const closed = AbortSignal.any([signal, this.#closing.signal]);
		try {
			return await this.#acquire(name, AbortSignal.any([closed, this.#signal]));
		} catch (error) {
			if (this.#signal.aborted) {
				// No lease is granted any more, which is not an error of the caller.
				await aborted(closed);
			}
			closed.throwIfAborted();
			throw error;
		}
	}

	held(prefix: string, signal: AbortSignal): AsyncIterable<ReadonlySet<string>> {
		return this.#keys.names(prefix, AbortSignal.any([signal, this.#closing.signal]));
	}

	/** Releases all leases, and closes the connection. */
	async close(): Promise<void> {
		this.#closing.abort(new Error("the leases were closed"));
		await this.#releaseAll();
		this.#client.close();
	}

	async #acquire(name: string, either: AbortSignal): Promise<LeaseHold> {
		for (;;) {
			either.throwIfAborted();
			try {
				const held = await this.#attempt(name, either);
				if (held !== undefined) {
					if (either.aborted) {
						await held.release();
					}
					either.throwIfAborted();
					return held;
				}
			} catch (error) {
				either.throwIfAborted();
				const why = error instanceof Error ? error.message : String(error);
				this.#logger.warn({ lease: name, why }, "could not request a lease from etcd");
				await this.#keys.pause(either);
			}
		}
	}

	async #releaseAll(): Promise<void> {
		await Promise.all([...this.#holds].map((hold) => hold.release()));
	}

	/** Waits until the lease is free, and tries to acquire it; returns `undefined` if another server was first. */
	async #attempt(name: string, signal: AbortSignal): Promise<LeaseHold | undefined> {
		const { held, atRevision } = await this.#keys.find(name, signal);
		if (held !== undefined) {
			await this.#keys.gone(held, atRevision, signal);
		}
		// Measured before the request, since the time to live starts when etcd receives it.
		const grantedMs = this.#clock.monotonic();
		const created = await this.#keys.create(name, this.#holder, signal);
		return created && this.#hold(created, grantedMs);
	}

	#hold(key: LeaseKey, grantedMs: number): LeaseHold {
		const hold = new RenewedHold({
			fence: { lease: key.name, token: String(key.revision) },
			ttlMs: this.#ttlMs,
			grantedMs,
			clock: this.#clock,
			logger: this.#logger,
			renew: (signal) => this.#keys.renew(key, signal),
			gone: (signal) => this.#keys.gone(key, key.revision, signal),
			revoke: () => this.#keys.delete(key),
			settled: () => this.#holds.delete(hold),
		});
		this.#holds.add(hold);
		return hold;
	}
}
