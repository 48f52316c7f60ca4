import type { Worker } from "node:worker_threads";
import { StorageUnavailable } from "@plinth/storage";
import { allArtists, artist } from "@plinth/storage/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { createSqliteBackend, type SqliteBackend } from "../sqlite-backend.ts";

/** The started worker threads, so that a test can end them. */
const threads: Worker[] = [];
const onWorker = (worker: Worker) => threads.push(worker);

let directory: TestDirectory;
let backend: SqliteBackend;
let failures: Error[];
let failed: Promise<void>;

beforeEach(async () => {
	process.on("worker", onWorker);
	directory = await testDirectory();
	failures = [];
	const { promise, resolve } = Promise.withResolvers<void>();
	failed = promise;
	backend = await createSqliteBackend({
		path: directory.file("storage.db"),
		onFailed: (failure) => {
			failures.push(failure);
			resolve();
		},
	});
});

afterEach(async () => {
	await backend.close();
	await directory[Symbol.asyncDispose]();
	process.off("worker", onWorker);
	threads.length = 0;
});

function write(name: string) {
	return backend.commit([{ op: "put", resource: artist(name, "x"), expectedVersion: "" }]);
}

describe("a storage whose thread dies", () => {
	it("reports it once and immediately, accepts no commit, and serves reads", async () => {
		await write("miles");
		await threads[0]?.terminate();
		await failed;
		expect(failures[0]).toBeInstanceOf(StorageUnavailable);
		expect(failures[0]?.message).toContain("the storage thread has died");
		await expect(write("nina")).rejects.toBe(failures[0]);
		expect((await backend.list(allArtists)).resources).toHaveLength(1);
		expect(failures).toHaveLength(1);
	});

	it("fails unwritten commits", async () => {
		const commits = ["a", "b", "c"].map((name) => write(name));
		const outcomes = Promise.allSettled(commits);
		void threads[0]?.terminate();
		await failed;
		for (const outcome of await outcomes) {
			if (outcome.status === "rejected") {
				expect(outcome.reason).toBeInstanceOf(StorageUnavailable);
			}
		}
		expect(failures).toHaveLength(1);
	});

	it("reports nothing if it was closed", async () => {
		await write("miles");
		await backend.close();
		expect(failures).toEqual([]);
	});
});
