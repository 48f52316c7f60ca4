import { type Clock, type Fence, unlessAborted } from "@plinth/runtime";
import { Fenced, Inconsistent } from "@plinth/storage";
import { deadline } from "../client/deadline.ts";
import type { HeadRead, StoreHistory } from "../history/store-history.ts";
import type { FollowedState } from "./followed-state.ts";
import type { VersionOffset } from "./version-offset.ts";

/** What catching up needs. */
export interface CatchUpContext {
	readonly history: StoreHistory;
	readonly offset: VersionOffset;
	readonly state: FollowedState;
	readonly clock: Clock;
	/** How long it may take, in milliseconds. */
	readonly timeoutMs: number;
}

/**
 * Brings the state to where etcd was when it was asked, or later: a linearizable read of the head
 * key, which proves that etcd has lost nothing, and then a wait for the watch to have delivered that
 * revision.
 *
 * Calls that come while a read is under way share the next one: theirs must not begin before them.
 */
export class CatchUp {
	readonly #context: CatchUpContext;
	#reading: Promise<HeadRead> | undefined;
	#next: Promise<HeadRead> | undefined;

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
		await this.#reach((signal) => this.#context.history.head(signal, fence));
	}

	async #reach(
		read: (signal: AbortSignal) => Promise<HeadRead>,
		signal?: AbortSignal,
	): Promise<void> {
		const { state, offset, history, clock, timeoutMs } = this.#context;
		using within = deadline(clock, timeoutMs, signal);
		try {
			for (let isProven = false; !isProven; ) {
				const told = await unlessAborted(read(within.signal), within.signal);
				const reached = state.gate.reached(offset.versionOf(told.head), within.signal);
				await unlessAborted(reached, history.lost);
				// What could not be proven of what the state had then, can be of what it has now.
				isProven = told.isProven;
			}
		} catch (error) {
			signal?.throwIfAborted();
			history.lost.throwIfAborted();
			if (error instanceof Fenced || error instanceof Inconsistent) {
				throw error;
			}
			const why = error instanceof Error ? error.message : String(error);
			throw new Inconsistent(`can't catch up with etcd: ${why}`, { cause: error });
		}
	}

	#head(): Promise<HeadRead> {
		if (this.#reading === undefined) {
			this.#reading = this.#context.history.head().finally(() => {
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
}
