import { create } from "@bufbuild/protobuf";
import {
	aborted,
	type Clock,
	type LeaseHold,
	type LeaseManager,
	type Logger,
	type Random,
	silentLogger,
	sleep,
	systemRuntime,
} from "@plinth/runtime";
import { isMissing, operation } from "../client/conditions.ts";
import { EtcdClient } from "../client/etcd-client.ts";
import { defaultPrefix, type EtcdOptions } from "../client/etcd-options.ts";
import { TxnRequestSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import { Event_EventType, type KeyValue } from "../gen/mvccpb/kv_pb.ts";
import { Keys } from "../keys.ts";
import { HeldLease } from "./held-lease.ts";

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
/** How long to wait after a failure, in milliseconds. */
const retryAfterMs = 500;

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
	readonly #client: EtcdClient;
	readonly #keys: Keys;
	readonly #clock: Clock;
	readonly #random: Random;
	readonly #logger: Logger;
	readonly #ttlSeconds: number;
	readonly #holder: string;
	readonly #closing = new AbortController();
	readonly #signal: AbortSignal;
	readonly #holds = new Set<HeldLease>();

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
		// A renewal that takes longer is retried in time, at another member.
		const requestTimeoutMs = (ttlSeconds * 1000) / 4;
		this.#client = new EtcdClient({ ...options, requestTimeoutMs });
		this.#keys = new Keys(options.prefix ?? defaultPrefix);
		this.#clock = runtime.clock;
		this.#random = runtime.random;
		this.#logger = logger;
		this.#ttlSeconds = ttlSeconds;
		this.#holder = options.holder ?? `process ${process.pid}`;
		this.#signal = options.signal ?? new AbortController().signal;
		this.#signal.addEventListener("abort", () => void this.#releaseAll(), { once: true });
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

	async *held(prefix: string, signal: AbortSignal): AsyncGenerator<ReadonlySet<string>, never> {
		const closed = AbortSignal.any([signal, this.#closing.signal]);
		for (;;) {
			try {
				yield* this.#held(prefix, closed);
			} catch (error) {
				closed.throwIfAborted();
				const why = error instanceof Error ? error.message : String(error);
				this.#logger.debug({ prefix, why }, "lost the watch on leases");
				await sleep(this.#clock, retryAfterMs * (0.5 + this.#random.next()), closed);
			}
		}
	}

	/** Like `held`, until the first failure. */
	async *#held(prefix: string, signal: AbortSignal): AsyncGenerator<ReadonlySet<string>, void> {
		const range = this.#keys.leases(prefix);
		const { kvs, header } = await this.#client.range({ ...range, keysOnly: true }, signal);
		const names = new Set(kvs.map(({ key }) => this.#keys.leaseName(key)));
		yield new Set(names);
		const startRevision = (header?.revision ?? 0n) + 1n;
		for await (const { events } of this.#client.watch({ ...range, startRevision }, signal)) {
			for (const { type, kv } of events) {
				const name = this.#keys.leaseName(kv?.key ?? new Uint8Array());
				if (type === Event_EventType.DELETE) {
					names.delete(name);
				} else {
					names.add(name);
				}
			}
			if (events.length > 0) {
				yield new Set(names);
			}
		}
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
				await sleep(this.#clock, retryAfterMs * (0.5 + this.#random.next()), either);
			}
		}
	}

	/** Releases all leases, and closes the connection. */
	async close(): Promise<void> {
		this.#closing.abort(new Error("the leases were closed"));
		await this.#releaseAll();
		this.#client.close();
	}

	async #releaseAll(): Promise<void> {
		await Promise.all([...this.#holds].map((hold) => hold.release()));
	}

	/** Waits until the lease is free, and tries to acquire it; returns `undefined` if another server was first. */
	async #attempt(name: string, signal: AbortSignal): Promise<LeaseHold | undefined> {
		const key = this.#keys.lease(name);
		const { kvs, header } = await this.#client.range({ key }, signal);
		const holder = kvs[0];
		if (holder !== undefined) {
			await this.#gone(key, holder, header?.revision ?? 0n, signal);
		}
		// Measured before the request, since the time to live starts when etcd receives it.
		const grantedMs = this.#clock.monotonic();
		const lease = await this.#client.grantLease(this.#ttlSeconds, signal);
		try {
			const revision = await this.#create(key, lease, signal);
			if (revision !== undefined) {
				return this.#hold(name, key, lease, revision, grantedMs);
			}
		} catch (error) {
			// The key may still be created, but not once the etcd lease has ended.
			await this.#abandon(lease);
			throw error;
		}
		await this.#abandon(lease);
		return undefined;
	}

	/** Creates the key if it is missing, and returns its revision. */
	async #create(key: Uint8Array, lease: bigint, signal: AbortSignal): Promise<bigint | undefined> {
		const value = { key, value: Buffer.from(this.#holder), lease };
		const { succeeded, header } = await this.#client.transaction(
			create(TxnRequestSchema, {
				compare: [isMissing(key)],
				success: [operation("requestPut", value)],
			}),
			signal,
		);
		return succeeded ? header?.revision : undefined;
	}

	#hold(
		name: string,
		key: Uint8Array,
		lease: bigint,
		revision: bigint,
		grantedMs: number,
	): LeaseHold {
		const hold = new HeldLease({
			fence: { lease: name, token: String(revision) },
			ttlMs: this.#ttlSeconds * 1000,
			grantedMs,
			clock: this.#clock,
			logger: this.#logger,
			renew: (signal) => this.#client.keepLeaseAlive(lease, signal),
			gone: (signal) => this.#gone(key, { createRevision: revision }, revision, signal),
			revoke: () => this.#client.revokeLease(lease),
			settled: () => this.#holds.delete(hold),
		});
		this.#holds.add(hold);
		return hold;
	}

	async #abandon(lease: bigint): Promise<void> {
		try {
			await this.#client.revokeLease(lease);
		} catch {
			// It expires.
		}
	}

	/** Resolves when the key created at that revision no longer exists. */
	async #gone(
		key: Uint8Array,
		{ createRevision }: Pick<KeyValue, "createRevision">,
		startRevision: bigint,
		signal: AbortSignal,
	): Promise<void> {
		let from = startRevision;
		for (;;) {
			try {
				for await (const { events } of this.#client.watch({ key, startRevision: from }, signal)) {
					if (events.some(({ type }) => type === Event_EventType.DELETE)) {
						return;
					}
				}
			} catch (error) {
				signal.throwIfAborted();
				const why = error instanceof Error ? error.message : String(error);
				this.#logger.debug({ why }, "lost the watch on a lease");
				await sleep(this.#clock, retryAfterMs * (0.5 + this.#random.next()), signal);
			}
			const read = await this.#client.range({ key }, signal).catch((error: unknown) => {
				signal.throwIfAborted();
				this.#logger.debug({ err: error }, "could not read a lease");
				return undefined;
			});
			if (read !== undefined) {
				if (read.kvs[0]?.createRevision !== createRevision) {
					return;
				}
				from = read.header?.revision ?? 0n;
			}
		}
	}
}
