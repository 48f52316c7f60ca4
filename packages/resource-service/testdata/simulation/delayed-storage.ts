import type { Random } from "@plinth/runtime";
import type { SeededScheduler } from "@plinth/runtime/testing";
import type { StorageBackend } from "@plinth/storage";

/**
 * A storage whose every step takes its time: before it happens, and before its caller learns of it,
 * others may run.
 */
export function delayed(
	backend: StorageBackend,
	scheduler: SeededScheduler,
	random: Random,
): StorageBackend {
	async function someTime(): Promise<void> {
		while (random.next() < 0.4) {
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
		read: (id, options) => step(() => backend.read(id, options)),
		list: (query, options) => step(() => backend.list(query, options)),
		snapshot: (query, options) => step(() => backend.snapshot(query, options)),
		listByOwner: (owner) => step(() => backend.listByOwner(owner)),
		countByType: () => step(() => backend.countByType()),
		commit: (mutations, options) => step(() => backend.commit(mutations, options)),
		catchUp: (signal) => step(() => backend.catchUp(signal)),
		close: () => backend.close(),
		async *watchList(query, options) {
			await someTime();
			for await (const event of backend.watchList(query, options)) {
				await someTime();
				yield event;
			}
		},
	};
}
