import { setImmediate } from "node:timers/promises";
import type { Clock, Logger } from "@plinth/runtime";
import type { StateStore } from "@plinth/storage";
import { PageDecoder } from "./decode-page.ts";
import type { StorageThread } from "./storage-thread.ts";

/** How often progress is logged. */
const progressEveryMs = 1000;

/**
 * Fills a state store with what is stored. The thread reads and checks a page while the one before
 * it is decoded here; between pages, which take a millisecond or two, the event loop is free.
 *
 * @throws StorageFileError
 */
export async function load(
	thread: StorageThread,
	store: StateStore,
	path: string,
	{ clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<void> {
	const { revision, resources } = await thread.opened();
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
	}
	store.begin(revision);
	const tookMs = Math.round(clock.monotonic() - startMs);
	log.info({ path, resources: store.size, revision, tookMs }, "storage loaded");
}
