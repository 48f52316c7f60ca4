import { setImmediate } from "node:timers/promises";
import type { Clock, Logger } from "@plinth/runtime";
import type { StateStore } from "@plinth/storage";
import { PageDecoder } from "./decode-page.ts";
import type { Opened, StorageThread } from "./storage-thread.ts";

/** How often progress is logged. */
const progressEveryMs = 1000;

/** What loading makes use of. */
export interface LoadContext {
	readonly clock: Clock;
	/** Hears how far it has come, once a second. */
	readonly log: Logger;
	/** Stops it between two pages. */
	readonly signal?: AbortSignal;
}

/**
 * Fills a state store with what is stored. The thread reads and checks a page while the one before
 * it is decoded here; between pages, which take a millisecond or two, the event loop is free.
 *
 * @returns What the file says of itself.
 * @throws StorageFileError; the signal's reason.
 */
export async function load(
	thread: StorageThread,
	store: StateStore,
	path: string,
	{ clock, log, signal }: LoadContext,
): Promise<Opened> {
	const opened = await thread.opened();
	const { revision, resources } = opened;
	const startMs = clock.monotonic();
	let loggedMs = startMs;
	const decoder = new PageDecoder();
	let next = thread.nextPage();
	for (let page = await next; page !== undefined; page = await next) {
		next = thread.nextPage();
		// A failure is thrown where it is awaited, after this page.
		next.catch(() => {});
		for (const resource of decoder.decode(page)) {
			store.load(resource);
		}
		const nowMs = clock.monotonic();
		if (nowMs - loggedMs >= progressEveryMs) {
			loggedMs = nowMs;
			log.info({ path, loaded: store.size, resources }, "loading the storage");
		}
		// Messages of the thread are handled one after the other as long as there are any.
		await setImmediate();
		signal?.throwIfAborted();
	}
	store.begin(revision);
	const tookMs = Math.round(clock.monotonic() - startMs);
	log.info({ path, resources: store.size, revision, tookMs }, "storage loaded");
	return opened;
}
