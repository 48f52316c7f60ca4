import { create } from "@bufbuild/protobuf";
import { type Clock, type Logger, type Random, sleep } from "@plinth/runtime";
import { isMissing, operation } from "../client/conditions.ts";
import type { EtcdClient } from "../client/etcd-client.ts";
import { TxnRequestSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import { Event_EventType } from "../gen/mvccpb/kv_pb.ts";
import type { Keys } from "../keys.ts";

/** The dependencies of `LeaseKeys`. */
export interface LeaseKeysContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
	readonly clock: Clock;
	readonly random: Random;
	readonly logger: Logger;
	/** How long a lease lasts after it was granted or renewed. */
	readonly ttlSeconds: number;
}

/** The key of a held lease. */
export interface LeaseKey {
	readonly name: string;
	/** The revision that created it, which identifies the hold. */
	readonly revision: bigint;
	/** What its holder has written. */
	readonly holder: string;
	/** The etcd lease with which the key ends. */
	readonly etcdLease: bigint;
}

/** The result of a look-up. */
export interface FoundLease {
	/** Absent if the lease is free. */
	readonly held: LeaseKey | undefined;
	/** The revision of etcd at which that was so. */
	readonly atRevision: bigint;
}

/** How long to wait after a failure, in milliseconds. */
const retryAfterMs = 500;

/** The keys of held leases. Each is attached to an etcd lease, and is deleted when that is revoked or expires. */
export class LeaseKeys {
	readonly #context: LeaseKeysContext;

	constructor(context: LeaseKeysContext) {
		this.#context = context;
	}

	/** @throws EtcdError */
	async find(name: string, signal?: AbortSignal): Promise<FoundLease> {
		const { client, keys } = this.#context;
		const { kvs, header } = await client.range({ key: keys.lease(name) }, signal);
		const [key] = kvs;
		return {
			held: key && {
				name,
				revision: key.createRevision,
				holder: Buffer.from(key.value).toString(),
				etcdLease: key.lease,
			},
			atRevision: header?.revision ?? 0n,
		};
	}

	/** How many leases are held whose names begin with `prefix`. @throws EtcdError */
	async count(prefix: string): Promise<number> {
		const { client, keys } = this.#context;
		const { count } = await client.range({ ...keys.leases(prefix), countOnly: true });
		return Number(count);
	}

	/**
	 * Creates the key if it is missing; returns `undefined` if another holder was first.
	 *
	 * @throws EtcdError; then the key is not created later either.
	 */
	async create(name: string, holder: string, signal?: AbortSignal): Promise<LeaseKey | undefined> {
		const { client, keys, ttlSeconds } = this.#context;
		const etcdLease = await client.grantLease(ttlSeconds, signal);
		let revision: bigint | undefined;
		try {
			const key = keys.lease(name);
			const value = { key, value: Buffer.from(holder), lease: etcdLease };
			const { succeeded, header } = await client.transaction(
				create(TxnRequestSchema, {
					compare: [isMissing(key)],
					success: [operation("requestPut", value)],
				}),
				signal,
			);
			revision = succeeded ? header?.revision : undefined;
		} finally {
			if (revision === undefined) {
				// After a failure, the key may still be created, but not once the etcd lease has ended.
				await client.revokeLease(etcdLease).catch(() => {
					// It expires.
				});
			}
		}
		return revision === undefined ? undefined : { name, holder, revision, etcdLease };
	}

	/** Makes the key last for its whole time again. Returns whether it still existed. @throws EtcdError */
	renew({ etcdLease }: LeaseKey, signal?: AbortSignal): Promise<boolean> {
		return this.#context.client.keepLeaseAlive(etcdLease, signal);
	}

	/** Deletes the key. @throws EtcdError */
	delete({ etcdLease }: LeaseKey): Promise<void> {
		return this.#context.client.revokeLease(etcdLease);
	}

	/** Waits after a failure. */
	pause(signal: AbortSignal): Promise<void> {
		const { clock, random } = this.#context;
		return sleep(clock, retryAfterMs * (0.5 + random.next()), signal);
	}

	/** Resolves when the key no longer exists, which it did at a revision. */
	async gone({ name, revision }: LeaseKey, atRevision: bigint, signal: AbortSignal): Promise<void> {
		const { client, keys, logger } = this.#context;
		const key = keys.lease(name);
		let from = atRevision;
		for (;;) {
			try {
				for await (const { events } of client.watch({ key, startRevision: from }, signal)) {
					if (events.some(({ type }) => type === Event_EventType.DELETE)) {
						return;
					}
				}
			} catch (error) {
				signal.throwIfAborted();
				const why = error instanceof Error ? error.message : String(error);
				logger.debug({ why }, "lost the watch on a lease");
				await this.pause(signal);
			}
			const found = await this.find(name, signal).catch((error: unknown) => {
				signal.throwIfAborted();
				logger.debug({ err: error }, "could not read a lease");
				return undefined;
			});
			if (found !== undefined) {
				if (found.held?.revision !== revision) {
					return;
				}
				from = found.atRevision;
			}
		}
	}

	/** The names of the held leases that begin with a prefix: now, and after changes, until the signal aborts. */
	async *names(prefix: string, signal: AbortSignal): AsyncGenerator<ReadonlySet<string>, never> {
		for (;;) {
			try {
				yield* this.#names(prefix, signal);
			} catch (error) {
				signal.throwIfAborted();
				const why = error instanceof Error ? error.message : String(error);
				this.#context.logger.debug({ prefix, why }, "lost the watch on leases");
				await this.pause(signal);
			}
		}
	}

	/** Like `names`, until the first failure. */
	async *#names(prefix: string, signal: AbortSignal): AsyncGenerator<ReadonlySet<string>, void> {
		const { client, keys } = this.#context;
		const range = keys.leases(prefix);
		const { kvs, header } = await client.range({ ...range, keysOnly: true }, signal);
		const names = new Set(kvs.map(({ key }) => keys.leaseName(key)));
		yield new Set(names);
		const startRevision = (header?.revision ?? 0n) + 1n;
		for await (const { events } of client.watch({ ...range, startRevision }, signal)) {
			for (const { type, kv } of events) {
				const name = keys.leaseName(kv?.key ?? new Uint8Array());
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
}
