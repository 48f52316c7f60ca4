import type { Fence, LeaseHold, LeaseManager } from "./lease.ts";
import { unlessAborted } from "./unless-aborted.ts";

interface LocalLease {
	holder: LocalHold | undefined;
	/** The token of the newest hold; it only grows. */
	lastToken: number;
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
	/** Resolves when a lease has been granted or has ended; absent while nobody waits for that. */
	#changed: PromiseWithResolvers<void> | undefined;

	async acquire(name: string, signal: AbortSignal): Promise<LeaseHold> {
		signal.throwIfAborted();
		let lease = this.#leases.get(name);
		if (lease === undefined) {
			lease = { holder: undefined, lastToken: 0, waiting: new Set() };
			this.#leases.set(name, lease);
		}
		while (lease.holder !== undefined) {
			await nextTurn(lease, signal);
			signal.throwIfAborted();
		}
		return this.#grant(name, lease);
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
		return this.#leases.get(fence.lease)?.lastToken.toString() === fence.token;
	}

	/** Takes the lease away from its holder, whose signal aborts, and hands it to the next one. */
	revoke(name: string): void {
		this.#leases.get(name)?.holder?.revoke(new Error(`lease ${name} was revoked`));
	}

	#grant(name: string, lease: LocalLease): LocalHold {
		lease.lastToken += 1;
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
			fence: { lease: name, token: lease.lastToken.toString() },
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
