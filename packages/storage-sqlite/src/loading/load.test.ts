import { silentLogger, systemRuntime } from "@plinth/runtime";
import { defaultStorageLimits, LoadCapacity, StateStore } from "@plinth/storage";
import { expect, it } from "vitest";
import { freshIds } from "../backup-restore/backup-restore.ts";
import { testDirectory } from "../directory.fixture.ts";
import { writeMany } from "../file/large-storage.fixture.ts";
import { createSqliteBackend } from "../sqlite-backend.ts";
import { StorageThread } from "../thread/storage-thread.ts";
import { load } from "./load.ts";

it("a load that is aborted before it begins leaves no unhandled rejection", async () => {
	await using directory = await testDirectory();
	const path = directory.file("storage.db");
	await (await createSqliteBackend({ path })).close();
	const unhandled: unknown[] = [];
	const onUnhandled = (reason: unknown) => unhandled.push(reason);
	process.on("unhandledRejection", onUnhandled);
	const thread = new StorageThread({ path, mode: "read", fresh: freshIds(systemRuntime) });
	const stopped = load(thread, new StateStore(systemRuntime, defaultStorageLimits), path, {
		clock: systemRuntime.clock,
		logger: silentLogger,
		capacity: new LoadCapacity(defaultStorageLimits),
		signal: AbortSignal.abort(new Error("the storage was closed")),
	});
	// The thread ends, and so rejects pending requests.
	const ended = Promise.allSettled([stopped]).then(() => thread.abandon());
	await expect(stopped).rejects.toThrow("the storage was closed");
	await ended;
	await new Promise((resolve) => setImmediate(resolve));
	process.off("unhandledRejection", onUnhandled);
	expect(unhandled).toEqual([]);
});

it("a load decodes a bounded page at a time, and gets several with each message of the thread", async () => {
	await using directory = await testDirectory();
	const path = directory.file("storage.db");
	writeMany(path);
	const thread = new StorageThread({ path, mode: "read", fresh: freshIds(systemRuntime) });
	const nextPages = () => StorageThread.prototype.nextPages.call(thread);
	let messages = 0;
	const rows: number[] = [];
	thread.nextPages = async () => {
		messages += 1;
		const pages = await nextPages();
		rows.push(...(pages ?? []).map(({ ends }) => ends.length));
		return pages;
	};
	const store = new StateStore(systemRuntime, defaultStorageLimits);
	await load(thread, store, path, {
		clock: systemRuntime.clock,
		logger: silentLogger,
		capacity: new LoadCapacity(defaultStorageLimits),
	});
	await thread.close();
	expect(store.size).toBe(3_000);
	expect(Math.max(...rows)).toBe(128);
	// 24 pages of 128 rows, 8 to a message, and the message that there are no more.
	expect([rows.length, messages]).toEqual([24, 4]);
});
