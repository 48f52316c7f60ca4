import { type Clock, type Fence, unlessAborted } from "@plinth/runtime";
import { Fenced, StorageUnavailable } from "@plinth/storage";
import { deadline } from "../client/deadline.ts";
import type { HeadRead, StoreHistory } from "../history/store-history.ts";
import type { FollowedState } from "./followed-state.ts";
import type { VersionOffset } from "./version-offset.ts";

/** The dependencies of catching up. */
export interface CatchUpContext {
	readonly history: StoreHistory;
	readonly offset: VersionOffset;
	readonly state: FollowedState;
	readonly clock: Clock;
	/** How long it may take, in milliseconds. */
	readonly timeoutMs: number;
}

/**
 * Waits until the state is at least as new as etcd was at the call: it reads the head key linearizably, which
 * also proves that etcd has lost nothing, and then waits until the watch has delivered that revision.
 *
 * Calls made during a read share the next one, because their read must not begin before them.
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
	 * @throws StorageUnavailable; the signal's reason.
	 */
	async newest(signal?: AbortSignal): Promise<void> {
		await this.#reach(() => this.#head(), signal);
	}

	/**
	 * Like `newest`, if the fence belongs to the holder of its lease.
	 *
	 * @throws Fenced; StorageUnavailable.
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
				const latest = await unlessAborted(read(within.signal), within.signal);
				const reached = state.gate.reached(offset.versionOf(latest.head), within.signal);
				await unlessAborted(reached, history.lost);
				// If the proof was impossible for the state of then, it may be possible for the state of now.
				isProven = latest.isProven;
			}
		} catch (error) {
			signal?.throwIfAborted();
			history.lost.throwIfAborted();
			if (error instanceof Fenced || error instanceof StorageUnavailable) {
				throw error;
			}
			const why = error instanceof Error ? error.message : String(error);
			throw new StorageUnavailable(`can't catch up with etcd: ${why}`, { cause: error });
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
