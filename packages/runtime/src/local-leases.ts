import type { Fence, LeaseHold, LeaseManager } from "./lease.ts";
import { unlessAborted } from "./unless-aborted.ts";

interface LocalLease {
	holder: LocalHold | undefined;
	/** The token of the newest hold. */
	lastToken: string;
	/** First come, first served. */
	readonly waiting: Set<() => void>;
}

interface LocalHold extends LeaseHold {
	/** Ends the hold from outside, as a lease engine does when it loses contact with the holder. */
	revoke(reason: Error): void;
}

/** Leases within one process: for storages that only one process can open. */
export class LocalLeases implements LeaseManager {
	readonly #leases = new Map<string, LocalLease>();
	readonly #process: string;
	/** How many holds there have been. */
	#holds = 0;
	/** Resolves when a lease has been granted or has ended; absent while nobody waits for that. */
	#changed: PromiseWithResolvers<void> | undefined;

	/**
	 * @param process - identifies the process among all that have opened the storage: without it, the fence of a hold may equal
	 *   one that an earlier process has granted.
	 */
	constructor(process = "") {
		this.#process = process;
	}

	async acquire(name: string, signal: AbortSignal): Promise<LeaseHold> {
		for (;;) {
			signal.throwIfAborted();
			const hold = this.tryAcquire(name);
			if (hold !== undefined) {
				return hold;
			}
			await this.whenFree(name, signal);
		}
	}

	/** Acquires the lease if it is free; returns `undefined` if not. */
	tryAcquire(name: string): LeaseHold | undefined {
		let lease = this.#leases.get(name);
		if (lease === undefined) {
			lease = { holder: undefined, lastToken: "", waiting: new Set() };
			this.#leases.set(name, lease);
		}
		return lease.holder === undefined ? this.#grant(name, lease) : undefined;
	}

	/** Waits until the lease is free, in the order of the calls. Rejects with the reason of the signal. */
	async whenFree(name: string, signal: AbortSignal): Promise<void> {
		const lease = this.#leases.get(name);
		if (lease?.holder !== undefined) {
			await nextTurn(lease, signal);
		}
	}

	/**
	 * Forgets a lease that is free, and for which nobody waits: the fences of its holds are no longer current. For names that
	 * callers choose, of which there may be any number.
	 */
	forget(name: string): void {
		const lease = this.#leases.get(name);
		if (lease?.holder === undefined && lease?.waiting.size === 0) {
			this.#leases.delete(name);
		}
	}

	async *held(prefix: string, signal: AbortSignal): AsyncGenerator<ReadonlySet<string>, never> {
		for (;;) {
			signal.throwIfAborted();
			this.#changed ??= Promise.withResolvers();
			const changed = this.#changed.promise;
			const names = [...this.#leases].filter(
				([name, { holder }]) => holder !== undefined && name.startsWith(prefix),
			);
			yield new Set(names.map(([name]) => name));
			await unlessAborted(changed, signal);
		}
	}

	/**
	 * Whether the fence belongs to the newest hold of the lease. The fence of a hold that has ended
	 * stays current until the lease is granted again: until then its writes conflict with no one.
	 */
	isCurrent(fence: Fence): boolean {
		return fence.token !== "" && this.#leases.get(fence.lease)?.lastToken === fence.token;
	}

	/** Takes the lease away from its holder, whose signal aborts, and hands it to the next one. */
	revoke(name: string): void {
		this.#leases.get(name)?.holder?.revoke(new Error(`lease ${name} was revoked`));
	}

	#grant(name: string, lease: LocalLease): LocalHold {
		this.#holds += 1;
		lease.lastToken = `${this.#process}${this.#process && "."}${this.#holds}`;
		const controller = new AbortController();
		const end = (reason: Error) => {
			if (lease.holder !== hold) {
				return;
			}
			lease.holder = undefined;
			this.#noteChange();
			controller.abort(reason);
			for (const wake of [...lease.waiting]) {
				wake();
			}
		};
		const hold: LocalHold = {
			fence: { lease: name, token: lease.lastToken },
			signal: controller.signal,
			release: async () => end(new Error(`lease ${name} was released`)),
			revoke: end,
		};
		lease.holder = hold;
		this.#noteChange();
		return hold;
	}

	#noteChange(): void {
		this.#changed?.resolve();
		this.#changed = undefined;
	}
}

function nextTurn(lease: LocalLease, signal: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		if (signal.aborted) {
			reject(signal.reason);
			return;
		}
		const wake = () => {
			lease.waiting.delete(wake);
			signal.removeEventListener("abort", onAbort);
			resolve();
		};
		const onAbort = () => {
			lease.waiting.delete(wake);
			reject(signal.reason);
		};
		lease.waiting.add(wake);
		signal.addEventListener("abort", onAbort, { once: true });
	});
}
