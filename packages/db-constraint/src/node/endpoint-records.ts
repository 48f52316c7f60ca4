import { create } from "@bufbuild/protobuf";
import { EndpointSchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import {
	aborted,
	type LeaseHold,
	type LeaseManager,
	type Logger,
	type Runtime,
	sleep,
} from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { isPlanted } from "../fault-points.ts";
import { type EndpointAddresses, endpointName } from "../shadow/endpoint-addresses.ts";
import type { ShadowIndex } from "../shadow/shadow-index.ts";
import { putRecord, readRecord, recordId } from "../shadow/shadow-records.ts";

/** Options of `EndpointRecords`. */
export interface EndpointRecordsOptions {
	/** The storage of the deployment, without constraints. */
	readonly backend: StorageBackend;
	/** Names the records of all servers. */
	readonly index: Pick<ShadowIndex, "endpoints" | "onEndpoints">;
	/** Shared by the servers of the deployment. */
	readonly leases: LeaseManager;
	/** Where this server is reached. */
	readonly addresses: EndpointAddresses;
	readonly runtime: Runtime;
	readonly logger: Logger;
}

/** The pause after a failure of the storage, in milliseconds. */
const againMs = 1_000;

/** How long a server that stops waits until its record is removed, in milliseconds. */
const removalLimitMs = 1_000;

/** How long the lease of this server may be held by another one before that is a warning: longer than one that has died. */
const sharedMs = 60_000;

/**
 * The records of the servers of a deployment: each server that runs has one, with its addresses, and a lease of the same
 * name. Renewals of the lease change no record.
 *
 *     this server:    acquire its lease ─▶ write its record ─▶ … ─▶ stop: remove the record, release the lease
 *     any other one:  acquire the same lease, which waits until the server has lost it ─▶ remove the record
 *
 * Invariant: a record is written and removed only with the fence of its lease. So a record without a running server is
 * removed once the lease has ended, and that of a running one never. Servers with the same addresses share a record: they
 * can't call each other, and all but one warn of that.
 */
export class EndpointRecords {
	readonly #options: EndpointRecordsOptions;
	/** The records of other servers that this one waits to remove. */
	readonly #removing = new Map<string, Promise<void>>();

	constructor(options: EndpointRecordsOptions) {
		this.#options = options;
	}

	/** Keeps the record of this server, and removes those of servers that have died, until the signal aborts. */
	async run(signal: AbortSignal): Promise<void> {
		const { index, addresses } = this.#options;
		const own = endpointName(addresses);
		const removeOthers = () => {
			for (const name of index.endpoints.keys()) {
				if (isPlanted("leave the record of a server that has died")) {
					continue;
				}
				if (name !== own && !this.#removing.has(name)) {
					const removed = this.#removeOnceDead(name, signal).finally(() =>
						this.#removing.delete(name),
					);
					this.#removing.set(name, removed);
				}
			}
		};
		const unfollow = index.onEndpoints(removeOthers);
		removeOthers();
		await this.#keepOwn(own, signal);
		unfollow();
		await Promise.all(this.#removing.values());
	}

	async #keepOwn(name: string, signal: AbortSignal): Promise<void> {
		while (!signal.aborted) {
			const hold = await this.#acquireOwn(name, signal).catch(() => undefined);
			if (hold !== undefined) {
				await this.#write(name, hold, signal);
				await aborted(hold.signal, signal);
				await this.#limited(this.#remove(name, hold));
				await hold.release().catch(() => {});
			}
			await this.#pause(signal);
		}
	}

	/** Acquires the lease of this server. Warns if another one seems to have the same. */
	async #acquireOwn(name: string, signal: AbortSignal): Promise<LeaseHold> {
		const { leases, runtime, addresses, logger } = this.#options;
		const warning = runtime.clock.setTimer(sharedMs, () =>
			logger.warn(
				{ ...addresses },
				"another server of this deployment has the same addresses, or the leases can't be reached: servers with the same addresses can't call each other, and deletions may wait. Set --internal-listen to an address of its own, or, if it listens on all interfaces, --advertised-address to a host by which the others reach this server",
			),
		);
		try {
			return await leases.acquire(name, signal);
		} finally {
			warning.cancel();
		}
	}

	/** Writes the record until it is stored, or the hold has ended. */
	async #write(name: string, hold: LeaseHold, signal: AbortSignal): Promise<void> {
		const { backend, runtime, addresses, logger } = this.#options;
		const { announced: address, direct } = addresses;
		const directAddress = direct === address ? "" : direct;
		const ends = AbortSignal.any([hold.signal, signal]);
		while (!ends.aborted) {
			try {
				const stored = await readRecord(backend, name, {
					consistency: isPlanted("take the record of a server as it was a while ago")
						? "eventual"
						: "strong",
				});
				if (stored === undefined) {
					const value = create(EndpointSchema, { address, directAddress });
					const put = putRecord(runtime, name, undefined, { case: "endpoint", value });
					await backend.commit([put], { fence: hold.fence });
				}
				return;
			} catch (failure) {
				logger.debug({ err: failure, ...addresses }, "could not write the record of this server");
				await this.#pause(ends);
			}
		}
	}

	async #removeOnceDead(name: string, signal: AbortSignal): Promise<void> {
		const { leases, index, logger } = this.#options;
		while (!signal.aborted && index.endpoints.has(name)) {
			const lease = isPlanted("remove the record of a server that runs") ? `other ${name}` : name;
			const hold = await leases.acquire(lease, signal).catch(() => undefined);
			if (hold !== undefined) {
				const addresses = index.endpoints.get(name);
				if (await this.#remove(name, hold)) {
					logger.info({ ...addresses }, "removed the record of a server that no longer runs");
				}
				await hold.release().catch(() => {});
			}
			await this.#pause(signal);
		}
	}

	/** Before the next attempt: the index has not seen a change yet, or the storage does not respond. */
	async #pause(signal: AbortSignal): Promise<void> {
		await sleep(this.#options.runtime.clock, againMs, signal).catch(() => {});
	}

	/** Removes a record with the fence of its lease. Returns whether it has. */
	async #remove(name: string, hold: LeaseHold): Promise<boolean> {
		const { backend, logger } = this.#options;
		try {
			const stored = await readRecord(backend, name, { consistency: "strong" });
			if (stored === undefined) {
				return false;
			}
			const { version, id = recordId(name) } = stored.resource;
			await backend.commit([{ op: "delete", id, expectedVersion: version }], {
				fence: hold.fence,
			});
			return true;
		} catch (failure) {
			logger.debug({ err: failure, name }, "could not remove the record of a server");
			return false;
		}
	}

	/** Waits for a step of the stop, but not for a storage that does not respond. */
	async #limited(step: Promise<unknown>): Promise<void> {
		const done = new AbortController();
		const limit = sleep(this.#options.runtime.clock, removalLimitMs, done.signal).catch(() => {});
		await Promise.race([step, limit]);
		done.abort();
	}
}
