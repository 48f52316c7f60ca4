import { type Fence, type Logger, type TimedLeases, TooManyLeases } from "@plinth/runtime";
import { StorageUnavailable } from "@plinth/storage";
import { EtcdError } from "../client/etcd-error.ts";
import type { LeaseKey, LeaseKeys } from "./lease-keys.ts";

/** Options of `EtcdTimedLeases`. */
export interface EtcdTimedLeasesOptions {
	readonly keys: LeaseKeys;
	readonly ttlMs: number;
	readonly logger: Logger;
	/** When it aborts, no lease is granted or renewed: the history of etcd was lost, or the leases are closed. */
	readonly end: AbortSignal;
	/**
	 * How many leases may be held at once whose names begin with the same part, up to the first slash. Leases that are granted
	 * at the same time may exceed it.
	 */
	readonly limit?: number;
}

/**
 * Leases for a time, that any server of a cluster grants, renews and releases: all state is in etcd. The value of the key
 * is the id of the holder, so that a request which is repeated finds that it was granted.
 */
export class EtcdTimedLeases implements TimedLeases {
	readonly ttlMs: number;
	readonly #keys: LeaseKeys;
	readonly #logger: Logger;
	readonly #end: AbortSignal;
	readonly #limit: number;

	constructor({ keys, ttlMs, logger, end, limit = 10_000 }: EtcdTimedLeasesOptions) {
		this.#keys = keys;
		this.ttlMs = ttlMs;
		this.#logger = logger;
		this.#end = end;
		this.#limit = limit;
	}

	async grant(name: string, holder: string, patience: AbortSignal): Promise<Fence | undefined> {
		const waits = AbortSignal.any([patience, this.#end]);
		return this.#attempt(async () => {
			for (;;) {
				const { held, atRevision } = await this.#keys.find(name);
				if (held === undefined) {
					await this.#checkLimit(name);
					const created = await this.#keys.create(name, holder);
					if (created !== undefined) {
						return fenceOf(created);
					}
				} else if (held.holder !== holder) {
					await this.#keys.gone(held, atRevision, waits);
				} else if (await this.#keys.renew(held)) {
					return fenceOf(held);
				}
				waits.throwIfAborted();
			}
		}).catch((failure: unknown) => {
			this.#refuseAfterEnd();
			if (patience.aborted && failure === patience.reason) {
				return undefined;
			}
			throw failure;
		});
	}

	renew(name: string, holder: string): Promise<Fence | undefined> {
		return this.#attempt(async () => {
			const { held } = await this.#keys.find(name);
			return held?.holder === holder && (await this.#keys.renew(held)) ? fenceOf(held) : undefined;
		});
	}

	release(name: string, holder: string): Promise<void> {
		return this.#attempt(async () => {
			const { held } = await this.#keys.find(name);
			if (held?.holder === holder) {
				await this.#keys.delete(held);
			}
		});
	}

	held(prefix: string, signal: AbortSignal): AsyncIterable<ReadonlySet<string>> {
		return this.#keys.names(prefix, AbortSignal.any([signal, this.#end]));
	}

	/** @throws TooManyLeases; EtcdError. */
	async #checkLimit(name: string): Promise<void> {
		// Names without a slash are counted with all others.
		const held = await this.#keys.count(name.slice(0, name.indexOf("/") + 1));
		if (held >= this.#limit) {
			throw new TooManyLeases(this.#limit);
		}
	}

	/** @throws StorageUnavailable if no lease is granted or renewed any more. */
	#refuseAfterEnd(): void {
		if (this.#end.aborted) {
			const { reason } = this.#end;
			throw new StorageUnavailable(reason instanceof Error ? reason.message : String(reason));
		}
	}

	/** @throws StorageUnavailable if etcd can't be reached. */
	async #attempt<T>(run: () => Promise<T>): Promise<T> {
		this.#refuseAfterEnd();
		try {
			return await run();
		} catch (failure) {
			if (failure instanceof EtcdError) {
				this.#logger.debug({ err: failure }, "could not request a lease from etcd");
				throw new StorageUnavailable(`etcd did not respond: ${failure.message}`, {
					cause: failure,
				});
			}
			throw failure;
		}
	}
}

function fenceOf({ name, revision }: LeaseKey): Fence {
	return { lease: name, token: String(revision) };
}
