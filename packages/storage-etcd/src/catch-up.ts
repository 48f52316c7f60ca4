import type { Clock, Fence } from "@plinth/runtime";
import { Fenced, Inconsistent } from "@plinth/storage";
import { checkGrows } from "./check-grows.ts";
import { deadline, unlessAborted } from "./client/deadline.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import type { FollowedState } from "./followed-state.ts";
import type { Keys } from "./keys.ts";
import { readHead } from "./load.ts";
import { heldBy } from "./transaction.ts";

/** What catching up needs. */
export interface CatchUpContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
	readonly state: FollowedState;
	readonly clock: Clock;
	/** How long it may take, in milliseconds. */
	readonly timeoutMs: number;
}

/**
 * Brings the state to where etcd was when it was asked, or later: a linearizable read of the head
 * key, and then a wait for the watch to have delivered that revision.
 *
 * Calls that come while a read is under way share the next one: theirs must not begin before them.
 */
export class CatchUp {
	readonly #context: CatchUpContext;
	#reading: Promise<number> | undefined;
	#next: Promise<number> | undefined;

	constructor(context: CatchUpContext) {
		this.#context = context;
	}

	/**
	 * Resolves when the state has everything that etcd had when this was called.
	 *
	 * @throws Inconsistent; the signal's reason.
	 */
	async newest(signal?: AbortSignal): Promise<void> {
		await this.#reach(() => this.#head(), signal);
	}

	/**
	 * The same, where the fence is that of the lease's holder.
	 *
	 * @throws Fenced; Inconsistent.
	 */
	async newestWithin(fence: Fence): Promise<void> {
		const { client, keys } = this.#context;
		const readHead = { request: { case: "requestRange" as const, value: headOf(keys) } };
		await this.#reach(async (signal) => {
			const seen = this.#context.state.store.revision;
			const { succeeded, responses, header } = await client.readTransaction(
				{ compare: [...heldBy(fence, keys)], success: [readHead], failure: [readHead] },
				signal,
			);
			if (!succeeded) {
				throw new Fenced(fence.lease);
			}
			const answered = responses[0]?.response;
			const kvs = answered?.case === "responseRange" ? answered.value.kvs : [];
			checkGrows(seen, Number(header?.revision ?? 0n));
			return Number(kvs[0]?.modRevision ?? 0);
		});
	}

	async #reach(
		read: (signal: AbortSignal) => Promise<number>,
		signal?: AbortSignal,
	): Promise<void> {
		const { state, clock, timeoutMs } = this.#context;
		using within = deadline(clock, timeoutMs, signal);
		try {
			const revision = await unlessAborted(read(within.signal), within.signal);
			await state.gate.reached(revision, within.signal);
		} catch (error) {
			signal?.throwIfAborted();
			if (error instanceof Fenced || error instanceof Inconsistent) {
				throw error;
			}
			const why = error instanceof Error ? error.message : String(error);
			throw new Inconsistent(`can't catch up with etcd: ${why}`, { cause: error });
		}
	}

	#head(): Promise<number> {
		if (this.#reading === undefined) {
			this.#reading = this.#read().finally(() => {
				this.#reading = undefined;
			});
			return this.#reading;
		}
		if (this.#next === undefined) {
			this.#next = this.#reading
				.catch(() => {})
				.then(() => {
					this.#next = undefined;
					return this.#head();
				});
		}
		return this.#next;
	}

	async #read(): Promise<number> {
		const { client, keys, state } = this.#context;
		const seen = state.store.revision;
		const { head, revision } = await readHead(client, keys);
		checkGrows(seen, Number(revision));
		return head;
	}
}

function headOf(keys: Keys) {
	return { key: keys.head, keysOnly: true };
}
