import { create } from "@bufbuild/protobuf";
import {
	type Clock,
	type Logger,
	linkedSignal,
	type Random,
	sleep,
	unlessAborted,
} from "@plinth/runtime";
import { type ServerDirectory, type ServerRecord, StorageUnavailable } from "@plinth/storage";
import { operation } from "../client/conditions.ts";
import { deadline } from "../client/deadline.ts";
import type { EtcdClient } from "../client/etcd-client.ts";
import { TxnRequestSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import type { Keys } from "../keys.ts";
import { decodeServerRecord, encodeServerRecord } from "./server-record.ts";

/** The dependencies of the directory. */
export interface EtcdServersContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
	readonly clock: Clock;
	readonly random: Random;
	readonly logger: Logger;
	/** Aborts with a StorageUnavailable when etcd has lost history. */
	readonly historyLost: AbortSignal;
	/** How long the record of a killed server stays, in seconds: 10 if absent. */
	readonly ttlSeconds?: number;
}

const defaultTtlSeconds = 10;
/** Renewals per time to live. */
const renewals = 5;
/** How long to wait after a failure, in milliseconds. */
const retryAfterMs = 500;
/** How long a stop may take to remove the record, in milliseconds. */
const leaveWithinMs = 1_000;

/**
 * The live servers of a cluster in etcd, each under a key of its own (keys.ts):
 *
 * ```
 *   server    records itself    renews the lease      killed                 the lease expires, and the key is removed
 *             ├─────────┬─────────┬─────────┬─────────┤ ────────────────────┤
 *                                                             10 s at most
 * ```
 *
 * A server that stops revokes its lease. One whose lease has expired although it lives, because it was suspended or had lost
 * its connection to etcd, records itself again.
 */
export class EtcdServerDirectory implements ServerDirectory {
	readonly #context: EtcdServersContext;
	readonly #leaving = new AbortController();
	/** Aborts when the server leaves, or etcd has lost history. */
	readonly #end: AbortSignal;
	#kept: Promise<void> | undefined;
	/** The lease of the record, from before it is written. */
	#lease: bigint | undefined;
	#reading: Promise<readonly ServerRecord[]> | undefined;
	#next: Promise<readonly ServerRecord[]> | undefined;

	constructor(context: EtcdServersContext) {
		this.#context = context;
		this.#end = AbortSignal.any([this.#leaving.signal, context.historyLost]);
	}

	join(own: ServerRecord): void {
		this.#kept ??= this.#keep(own);
	}

	async list(signal: AbortSignal): Promise<readonly ServerRecord[]> {
		using stop = linkedSignal(signal, this.#end);
		stop.signal.throwIfAborted();
		try {
			return await unlessAborted(this.#read(), stop.signal);
		} catch (error) {
			stop.signal.throwIfAborted();
			throw new StorageUnavailable(`can't list servers in etcd: ${messageOf(error)}`, {
				cause: error,
			});
		}
	}

	/**
	 * Calls made during a read share the next one, so that many callers make few requests. No caller's signal ends a read: to
	 * the client, that is a member which does not respond.
	 */
	#read(): Promise<readonly ServerRecord[]> {
		if (this.#reading === undefined) {
			const { client, keys } = this.#context;
			this.#reading = client
				.range(keys.servers, this.#end)
				.then(({ kvs }) => kvs.flatMap(({ value }) => decodeServerRecord(value) ?? []))
				.finally(() => {
					this.#reading = undefined;
				});
			return this.#reading;
		}
		this.#next ??= this.#reading
			.catch(() => {})
			.then(() => {
				this.#next = undefined;
				return this.#read();
			});
		return this.#next;
	}

	async leave(): Promise<void> {
		this.#leaving.abort(new StorageUnavailable("the server has left the cluster"));
		await this.#kept;
		if (this.#lease === undefined) {
			return;
		}
		const { client, clock, logger } = this.#context;
		using within = deadline(clock, leaveWithinMs);
		try {
			await client.revokeLease(this.#lease, within.signal);
		} catch (error) {
			logger.debug({ why: messageOf(error) }, "could not remove the record of this server");
		}
		this.#lease = undefined;
	}

	/** Never rejects. */
	async #keep(own: ServerRecord): Promise<void> {
		const { clock, random, logger } = this.#context;
		let isFailing = false;
		while (!this.#end.aborted) {
			try {
				await this.#record(own);
				isFailing = false;
				await this.#renewWhileItLives();
				logger.info({}, "the record of this server has expired in etcd: it records itself again");
			} catch (error) {
				if (this.#end.aborted) {
					return;
				}
				if (!isFailing) {
					logger.warn({ why: messageOf(error) }, "could not record this server in etcd");
				}
				isFailing = true;
				await sleep(clock, retryAfterMs * (0.5 + random.next()), this.#end).catch(() => {});
			}
		}
	}

	async #record(own: ServerRecord): Promise<void> {
		const { client, keys, ttlSeconds = defaultTtlSeconds } = this.#context;
		const lease = await client.grantLease(ttlSeconds, this.#end);
		this.#lease = lease;
		const put = { key: keys.server(own.id), value: encodeServerRecord(own), lease };
		const request = create(TxnRequestSchema, { success: [operation("requestPut", put)] });
		await client.transaction(request, this.#end);
	}

	/** Resolves when the lease is gone. */
	async #renewWhileItLives(): Promise<void> {
		const { client, clock, ttlSeconds = defaultTtlSeconds } = this.#context;
		const intervalMs = (ttlSeconds * 1_000) / renewals;
		do {
			await sleep(clock, intervalMs, this.#end);
		} while (await client.keepLeaseAlive(this.#lease ?? 0n, this.#end));
	}
}

function messageOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}
