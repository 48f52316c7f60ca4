import { setImmediate } from "node:timers/promises";
import { type Clock, type Logger, unlessAborted } from "@plinth/runtime";
import type { LoadCapacity, StateStore } from "@plinth/storage";
import type { Opened, StorageThread } from "../thread/storage-thread.ts";
import { PageDecoder } from "./decode-page.ts";
import type { Page } from "./page.ts";

/** How often progress is logged. */
const progressEveryMs = 1000;

/** The dependencies of loading. */
export interface LoadContext {
	readonly clock: Clock;
	/** Logs the progress, once a second. */
	readonly logger: Logger;
	/** Checks that the state fits into memory. */
	readonly capacity: LoadCapacity;
	/** Aborts loading at once. */
	readonly signal?: AbortSignal;
}

/**
 * Loads the stored resources into a state store. The thread reads and checks some pages while the ones before are
 * decoded here; between pages, which take a millisecond or two, the event loop is free.
 *
 * @returns The revision, size and identity of the file.
 * @throws StorageFileError; StateTooLarge; the signal's reason.
 */
export async function load(
	thread: StorageThread,
	store: StateStore,
	path: string,
	{ clock, logger, capacity, signal }: LoadContext,
): Promise<Opened> {
	const opened = await unlessAborted(thread.opened(), signal);
	const { revision, resources, readableByOthers } = opened;
	if (readableByOthers.length > 0) {
		logger.warn(
			{ files: readableByOthers },
			"files of the storage are readable by others, and this process may not change that: set their mode to 0600",
		);
	}
	const startMs = clock.monotonic();
	let loggedMs = startMs;
	const decoder = new PageDecoder();
	const loadPage = (page: Page) => {
		for (const resource of decoder.decode(page)) {
			store.load(resource);
		}
		capacity.check({ bytes: store.bytes, size: store.size, total: resources });
		const nowMs = clock.monotonic();
		if (nowMs - loggedMs >= progressEveryMs) {
			loggedMs = nowMs;
			logger.info({ path, loaded: store.size, resources }, "loading the storage");
		}
	};
	let next = thread.nextPages();
	// The last pages take as long as the final checks of the whole file.
	for (;;) {
		const pages = await unlessAborted(next, signal);
		if (pages === undefined) {
			break;
		}
		next = thread.nextPages();
		// A failure is thrown when it is awaited, after these pages.
		next.catch(() => {});
		for (const page of pages) {
			loadPage(page);
			await setImmediate();
			signal?.throwIfAborted();
		}
	}
	store.begin(revision);
	const tookMs = Math.round(clock.monotonic() - startMs);
	logger.info({ path, resources: store.size, revision, tookMs }, "storage loaded");
	return opened;
}
