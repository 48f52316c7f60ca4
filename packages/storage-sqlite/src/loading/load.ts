import { setImmediate } from "node:timers/promises";
import { type Clock, type Logger, unlessAborted } from "@plinth/runtime";
import type { LoadCapacity, StateStore } from "@plinth/storage";
import type { Opened, StorageThread } from "../thread/storage-thread.ts";
import { PageDecoder } from "./decode-page.ts";

/** How often progress is logged. */
const progressEveryMs = 1000;

/** What loading makes use of. */
export interface LoadContext {
	readonly clock: Clock;
	/** Hears how far it has come, once a second. */
	readonly log: Logger;
	/** Checks that what is loaded fits. */
	readonly capacity: LoadCapacity;
	/** Stops it at once. */
	readonly signal?: AbortSignal;
}

/**
 * Fills a state store with what is stored. The thread reads and checks a page while the one before
 * it is decoded here; between pages, which take a millisecond or two, the event loop is free.
 *
 * @returns What the file says of itself.
 * @throws StorageFileError; StateTooLarge; the signal's reason.
 */
export async function load(
	thread: StorageThread,
	store: StateStore,
	path: string,
	{ clock, log, capacity, signal }: LoadContext,
): Promise<Opened> {
	const opened = await unlessAborted(thread.opened(), signal);
	const { revision, resources, readableByOthers } = opened;
	if (readableByOthers.length > 0) {
		log.warn(
			{ files: readableByOthers },
			"files of the storage are readable by others, and this process may not change that: set their mode to 0600",
		);
	}
	const startMs = clock.monotonic();
	let loggedMs = startMs;
	const decoder = new PageDecoder();
	let next = thread.nextPage();
	// The last page takes as long as the checks of all of the file.
	for (;;) {
		const page = await unlessAborted(next, signal);
		if (page === undefined) {
			break;
		}
		next = thread.nextPage();
		// A failure is thrown where it is awaited, after this page.
		next.catch(() => {});
		for (const resource of decoder.decode(page)) {
			store.load(resource);
		}
		capacity.check({ bytes: store.bytes, size: store.size, of: resources });
		const nowMs = clock.monotonic();
		if (nowMs - loggedMs >= progressEveryMs) {
			loggedMs = nowMs;
			log.info({ path, loaded: store.size, resources }, "loading the storage");
		}
		// Messages of the thread are handled one after the other as long as there are any.
		await setImmediate();
	}
	store.begin(revision);
	const tookMs = Math.round(clock.monotonic() - startMs);
	log.info({ path, resources: store.size, revision, tookMs }, "storage loaded");
	return opened;
}
