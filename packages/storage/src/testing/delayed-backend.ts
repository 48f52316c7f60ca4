import type { SeededRuntime } from "@plinth/runtime/testing";
import type { StorageBackend } from "../backend.ts";

/** Options of the delays. */
export interface DelayOptions extends Pick<SeededRuntime, "scheduler" | "random"> {
	/** The chance that a step waits once more while another task may run; at least 0, below 1. 0.3 by default. */
	readonly chance?: number;
}

/**
 * A storage whose every step is delayed: other tasks may run before the step, and again before its caller
 * receives the result. So a commit may be applied long after it was sent, and its caller may learn of it
 * late.
 */
export function delayedBackend(backend: StorageBackend, options: DelayOptions): StorageBackend {
	const { scheduler, random, chance = 0.3 } = options;
	if (!(chance >= 0 && chance < 1)) {
		throw new RangeError(`a chance of delay must be from 0 on and below 1, got ${chance}`);
	}
	async function someTime(): Promise<void> {
		while (random.next() < chance) {
			await scheduler.pause();
		}
	}
	async function step<T>(run: () => Promise<T>): Promise<T> {
		await someTime();
		try {
			return await run();
		} finally {
			await someTime();
		}
	}
	return {
		read: (id, readOptions) => step(() => backend.read(id, readOptions)),
		lookup: (name, readOptions) => step(() => backend.lookup(name, readOptions)),
		list: (query, readOptions) => step(() => backend.list(query, readOptions)),
		snapshot: (query, readOptions) => step(() => backend.snapshot(query, readOptions)),
		listByOwner: (owner, readOptions) => step(() => backend.listByOwner(owner, readOptions)),
		countByType: () => step(() => backend.countByType()),
		countByTypeIn: (unit, readOptions) => step(() => backend.countByTypeIn(unit, readOptions)),
		commit: (mutations, commitOptions) => step(() => backend.commit(mutations, commitOptions)),
		catchUp: (signal, atLeast) => step(() => backend.catchUp(signal, atLeast)),
		close: () => backend.close(),
		async *watchList(query, watchOptions) {
			await someTime();
			for await (const event of backend.watchList(query, watchOptions)) {
				await someTime();
				yield event;
			}
		},
	};
}
