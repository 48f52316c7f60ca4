import { copyFile, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { Condition_State, ResourceSchema, StatusSchema } from "@plinth/proto";
import { systemRandom, systemScheduler } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import {
	CasFailure,
	type StorageBackend,
	StorageUnavailable,
	VersionCompacted,
	WatchClosed,
} from "@plinth/storage";
import { allArtists, artist, textOf, WatchReader } from "@plinth/storage/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fileFailure, type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { createSqliteBackend, type SqliteBackend } from "../sqlite-backend.ts";
import { backupFile, restoreFile } from "./backup-restore.ts";

let directory: TestDirectory;
let path: string;
let backup: string;
let clock: FakeClock;

beforeEach(async () => {
	directory = await testDirectory();
	path = directory.file("storage.db");
	backup = directory.file("backup.db");
	clock = new FakeClock();
});

afterEach(async () => {
	await directory[Symbol.asyncDispose]();
});

function world() {
	return { clock, random: systemRandom, scheduler: systemScheduler };
}

function open(): Promise<SqliteBackend> {
	return createSqliteBackend({ path, runtime: world() });
}

async function opened<T>(body: (backend: SqliteBackend) => Promise<T>): Promise<T> {
	const backend = await open();
	try {
		return await body(backend);
	} finally {
		await backend.close();
	}
}

async function put(backend: StorageBackend, name: string, text: string): Promise<string> {
	const resource = artist(name, text);
	const stored = resource.id && (await backend.read(resource.id).catch(() => undefined));
	const expectedVersion = stored?.version ?? "";
	return (await backend.commit([{ op: "put", resource, expectedVersion }])).version;
}

async function text(backend: StorageBackend, name: string): Promise<string> {
	const { id } = artist(name);
	return id === undefined ? "" : textOf(await backend.read(id));
}

/** A closed storage with a backup in which "a" has the text "old", and later commits. */
async function pastAndPresent() {
	return opened(async (backend) => {
		const old = await put(backend, "a", "old");
		await put(backend, "b", "kept");
		const report = await backend.backup({ to: backup });
		const versions = [old, report.version];
		for (let step = 0; step < 20; step++) {
			versions.push(await put(backend, "a", `new ${step}`));
		}
		return { versions, identity: backend.identity, newest: versions.at(-1) ?? "" };
	});
}

/** Checks that no earlier version is accepted, and that all current ones are later. */
async function expectAllOutdated(backend: SqliteBackend, versions: readonly string[]) {
	const { resources, version } = await backend.list(allArtists);
	const highest = Math.max(...versions.map(Number));
	expect(Number(version)).toBeGreaterThan(highest);
	for (const resource of resources) {
		expect(Number(resource.version)).toBeGreaterThan(highest);
	}
	for (const afterVersion of versions) {
		const watch = new WatchReader(backend, allArtists, { afterVersion });
		await expect(watch.next()).rejects.toBeInstanceOf(VersionCompacted);
		for (const { id } of resources) {
			expect(id).toBeDefined();
			const stale = { op: "put", resource: artist(id?.name ?? ""), expectedVersion: afterVersion };
			await expect(backend.commit([{ ...stale, op: "put" }])).rejects.toBeInstanceOf(CasFailure);
			const remove = id && { op: "delete" as const, id, expectedVersion: afterVersion };
			await expect(backend.commit(remove ? [remove] : [])).rejects.toBeInstanceOf(CasFailure);
			const assertion = id && { op: "assert" as const, id, expectedVersion: afterVersion };
			await expect(backend.commit(assertion ? [assertion] : [])).rejects.toBeInstanceOf(CasFailure);
		}
	}
}

async function files(): Promise<string[]> {
	const names = await readdir(directory.path);
	// SQLite creates the latter two for a file that it reads.
	return names.filter((name) => !/\.lock$|-wal$|-shm$/.test(name)).sort();
}

describe("a restore of a closed storage", () => {
	it("brings back the content of the backup, at versions later than any before", async () => {
		const { versions, newest } = await pastAndPresent();
		const report = await restoreFile({ path, from: backup, runtime: world() });
		expect(report.resources).toBe(2);
		await opened(async (backend) => {
			expect(await text(backend, "a")).toBe("old");
			expect(await text(backend, "b")).toBe("kept");
			expect((await backend.list(allArtists)).version).toBe(report.version);
			await expectAllOutdated(backend, versions);
			expect(Number(await put(backend, "a", "next"))).toBe(Number(report.version) + 1);
			expect(Number(report.version)).toBeGreaterThan(Number(newest));
		});
	});

	it("reports in its identity that it was restored, and from which backup", async () => {
		const { identity } = await pastAndPresent();
		const report = await restoreFile({ path, from: backup, runtime: world() });
		expect(report.identity).toEqual({
			uid: identity.uid,
			incarnation: expect.not.stringMatching(identity.incarnation),
			restores: 1,
			restored: {
				fromIncarnation: identity.incarnation,
				fromVersion: "2",
				version: report.version,
				atMs: clock.now(),
			},
		});
		await opened(async (backend) => expect(backend.identity).toEqual(report.identity));
		clock.advance(1);
		const again = await restoreFile({ path, from: backup, runtime: world() });
		expect(again.identity).toMatchObject({ uid: identity.uid, restores: 2 });
		expect(again.identity.incarnation).not.toBe(report.identity.incarnation);
	});

	it("keeps the replaced storage, which can be restored in turn", async () => {
		const { versions } = await pastAndPresent();
		const { replaced, version } = await restoreFile({ path, from: backup, runtime: world() });
		expect(replaced).toMatch(/storage\.db\.replaced-/);
		await restoreFile({ path, from: replaced ?? "", runtime: world() });
		await opened(async (backend) => {
			expect(await text(backend, "a")).toBe("new 19");
			await expectAllOutdated(backend, [...versions, version]);
		});
	});

	it("raises versions past any issued even if the storage is lost, and even if it was restored before", async () => {
		const { versions } = await pastAndPresent();
		for (let round = 0; round < 3; round++) {
			clock.advance(1000);
			await restoreFile({ path, from: backup, runtime: world() });
			await opened(async (backend) => {
				for (let step = 0; step < 5; step++) {
					versions.push(await put(backend, "a", `after restore ${round}.${step}`));
				}
			});
		}
		await rm(path);
		clock.advance(1000);
		const report = await restoreFile({ path, from: backup, runtime: world() });
		expect(report.replaced).toBeUndefined();
		await opened(async (backend) => {
			expect(await text(backend, "a")).toBe("old");
			await expectAllOutdated(backend, versions);
		});
	});

	it("raises versions past any issued even if the storage is damaged, and keeps the damaged file", async () => {
		const { versions } = await pastAndPresent();
		for (const damage of [
			() => truncate(path, 5000),
			() => writeFile(path, "no database any more"),
			() => writeFile(path, ""),
		]) {
			await damage();
			const damaged = await readFile(path);
			clock.advance(1000);
			const { replaced } = await restoreFile({ path, from: backup, runtime: world() });
			expect(await readFile(replaced ?? "")).toEqual(damaged);
			await opened(async (backend) => {
				expect(await text(backend, "a")).toBe("old");
				await expectAllOutdated(backend, versions);
				versions.push(await put(backend, "a", "more"));
			});
		}
	});

	it("raises versions again when restored twice at one instant of the clock", async () => {
		const { versions } = await pastAndPresent();
		for (let round = 0; round < 3; round++) {
			const { version } = await restoreFile({ path, from: backup, runtime: world() });
			await opened(async (backend) => {
				await expectAllOutdated(backend, versions);
				versions.push(version, await put(backend, "a", "more"));
			});
		}
	});

	it("is refused if the clock is behind the backup, unless the newest version is given", async () => {
		const { newest, versions } = await pastAndPresent();
		await rm(path);
		clock = new FakeClock({ nowMs: clock.now() - 1 });
		const failure = await fileFailure(restoreFile({ path, from: backup, runtime: world() }));
		expect(failure).toMatchObject({ problem: "clock" });
		expect(await files()).toEqual(["backup.db"]);
		await restoreFile({ path, from: backup, runtime: world(), newestVersion: newest });
		await opened((backend) => expectAllOutdated(backend, versions));
	});

	it("needs no clock if the storage itself has its newest version", async () => {
		const { versions } = await pastAndPresent();
		clock = new FakeClock({ nowMs: 0 });
		for (let round = 0; round < 2; round++) {
			const { version } = await restoreFile({ path, from: backup, runtime: world() });
			await opened((backend) => expectAllOutdated(backend, versions));
			versions.push(version);
		}
	});

	it("is refused if the clock is so far ahead that versions would run out", async () => {
		await pastAndPresent();
		clock = new FakeClock({ nowMs: Date.UTC(2300, 0, 1) });
		const failure = await fileFailure(restoreFile({ path, from: backup, runtime: world() }));
		expect(failure).toMatchObject({ problem: "clock" });
	});

	it("checks the whole backup before it replaces anything", async () => {
		await opened(async (backend) => {
			for (let index = 0; index < 500; index++) {
				await put(backend, `a${index}`, "x".repeat(200));
			}
			await backend.backup({ to: backup });
			await put(backend, "a0", "present");
		});
		const before = await readFile(path);
		const good = await readFile(backup);
		const bad = directory.file("bad.db");
		const last = good.lastIndexOf("x".repeat(200));
		for (const content of [
			good.subarray(0, good.length - 4096),
			good.with(last + 5, 121),
			good.subarray(0, 10),
			Buffer.from("not a database"),
		]) {
			await writeFile(bad, content);
			const { problem } = await fileFailure(restoreFile({ path, from: bad, runtime: world() }));
			expect(["damaged", "foreign"]).toContain(problem);
			expect((await readFile(path)).equals(before)).toBe(true);
		}
		expect(await files()).toEqual(["backup.db", "bad.db", "storage.db"]);
	});

	it("is refused while the storage is open, and if there is no backup", async () => {
		await pastAndPresent();
		await opened(async () => {
			const failure = await fileFailure(restoreFile({ path, from: backup, runtime: world() }));
			expect(failure).toMatchObject({ problem: "in-use" });
		});
		const from = directory.file("missing.db");
		const failure = await fileFailure(restoreFile({ path, from, runtime: world() }));
		expect(failure).toMatchObject({ problem: "unreachable" });
		await opened(async (backend) => expect(await text(backend, "a")).toBe("new 19"));
	});

	it("stops at its signal and leaves the storage unchanged", async () => {
		await opened(async (backend) => {
			for (let index = 0; index < 1000; index++) {
				void put(backend, `a${index}`, "x");
			}
			await put(backend, "z", "x");
			await backend.backup({ to: backup });
			await put(backend, "a", "present");
		});
		const restore = async () => {
			const aborting = new AbortController();
			return restoreFile({
				path,
				from: backup,
				runtime: world(),
				signal: aborting.signal,
				progress: () => aborting.abort(new Error("enough")),
			});
		};
		let outcome = (await Promise.allSettled([restore()]))[0];
		while (outcome.status === "fulfilled") {
			// On a busy machine the signal may come when the restore is done: once more, from the same state.
			await rm(outcome.value.replaced ?? "");
			await opened(async (backend) => put(backend, "a", "present"));
			outcome = (await Promise.allSettled([restore()]))[0];
		}
		expect(outcome.reason).toMatchObject({ message: "enough" });
		expect(await files()).toEqual(["backup.db", "storage.db"]);
		await opened(async (backend) => expect(await text(backend, "a")).toBe("present"));
	});

	it("removes a leftover log, which SQLite would apply to the new file", async () => {
		await pastAndPresent();
		// As left by a killed process: a main file, and commits that are only in the log.
		const killed = await open();
		await put(killed, "a", "in the log only");
		await copyFile(path, directory.file("killed.db"));
		await copyFile(`${path}-wal`, directory.file("killed.db-wal"));
		await killed.close();
		path = directory.file("killed.db");
		const { replaced } = await restoreFile({ path, from: backup, runtime: world() });
		await opened(async (backend) => expect(await text(backend, "a")).toBe("old"));
		path = replaced ?? "";
		await opened(async (backend) => expect(await text(backend, "a")).toBe("in the log only"));
	});
});

describe("a restore of an open storage", () => {
	it("ends all watches as WatchClosed, and continues with the backup at later versions", async () => {
		await pastAndPresent();
		await opened(async (backend) => {
			const { signal } = new AbortController();
			const { version: before } = await backend.list(allArtists);
			const watch = backend.watchList(allArtists, { afterVersion: before, signal });
			const iterator = watch[Symbol.asyncIterator]();
			const waiting = expect(iterator.next()).rejects.toBeInstanceOf(WatchClosed);
			const idle = new WatchReader(backend);
			const { incarnation } = backend.identity;
			const report = await backend.restore({ from: backup });
			await waiting;
			await expect(idle.next()).rejects.toBeInstanceOf(WatchClosed);
			expect(await text(backend, "a")).toBe("old");
			expect(backend.identity).toEqual(report.identity);
			expect(backend.identity.incarnation).not.toBe(incarnation);
			await expectAllOutdated(backend, ["1", "2", before]);
			const next = await put(backend, "a", "after");
			expect(Number(next)).toBe(Number(report.version) + 1);
		});
		await opened(async (backend) => {
			expect(await text(backend, "a")).toBe("after");
			expect(backend.identity.restores).toBe(1);
		});
	});

	it("has the counts of the backup, which are the same when it is opened again", async () => {
		const counts = (backend: SqliteBackend) => [...backend.statistics().types.values()];
		const stored = { resources: 1, withFalse: 1, withStale: 1, beingDeleted: 0, writes: 0 };
		await opened(async (backend) => {
			const status = create(StatusSchema, {
				...{ observedGeneration: "earlier", conditions: [{ state: Condition_State.FALSE }] },
			});
			const resource = create(ResourceSchema, { ...artist("a", "x"), status: { singers: status } });
			const { version } = await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
			expect(counts(backend)).toEqual([{ ...stored, writes: 1 }]);
			await backend.backup({ to: backup });
			const { id } = resource;
			if (id !== undefined) {
				await backend.commit([{ op: "delete", id, expectedVersion: version }]);
			}
			const none = { resources: 0, withFalse: 0, withStale: 0, beingDeleted: 0 };
			expect(counts(backend)).toEqual([{ ...none, writes: 2 }]);
			await backend.restore({ from: backup });
			expect(counts(backend)).toEqual([stored]);
		});
		await opened(async (backend) => expect(counts(backend)).toEqual([stored]));
	});

	it("settles every commit made meanwhile, and loses none made after", async () => {
		await pastAndPresent();
		await opened(async (backend) => {
			let done = false;
			const restore = backend.restore({ from: backup }).finally(() => {
				done = true;
			});
			const versions: number[] = [];
			const names: string[] = [];
			for (let step = 0; !done; step++) {
				versions.push(Number(await put(backend, `c${step}`, "meanwhile")));
				names.push(`c${step}`);
			}
			const { version } = await restore;
			expect(versions).toEqual([...versions].sort((a, b) => a - b));
			const { resources } = await backend.list(allArtists);
			const after = names.filter((_, index) => (versions[index] ?? 0) > Number(version));
			expect(resources.map(({ id }) => id?.name)).toEqual(["a", "b", ...after.sort()]);
		});
	});

	it("leaves the storage unchanged if the backup is damaged or the signal aborts", async () => {
		await pastAndPresent();
		const bad = directory.file("bad.db");
		await copyFile(backup, bad);
		await truncate(bad, 6000);
		await opened(async (backend) => {
			const { identity } = backend;
			expect(await fileFailure(backend.restore({ from: bad }))).toMatchObject({
				problem: "damaged",
			});
			const aborting = new AbortController();
			const aborted = backend.restore({
				from: backup,
				signal: aborting.signal,
				progress: () => aborting.abort(new Error("enough")),
			});
			await expect(aborted).rejects.toThrow("enough");
			expect(backend.identity).toBe(identity);
			expect(await text(backend, "a")).toBe("new 19");
			await put(backend, "a", "goes on");
		});
		await opened(async (backend) => expect(await text(backend, "a")).toBe("goes on"));
	});

	it("ends when the storage is closed", async () => {
		await pastAndPresent();
		const backend = await open();
		let closing: Promise<void> | undefined;
		const restore = backend.restore({
			from: backup,
			progress: () => {
				closing ??= backend.close();
			},
		});
		await expect(restore).rejects.toBeInstanceOf(StorageUnavailable);
		await closing;
		await opened(async (again) => expect(await text(again, "a")).toBe("new 19"));
	});

	it("refuses an open storage as a backup, even itself", async () => {
		await pastAndPresent();
		await opened(async (backend) => {
			expect(await fileFailure(backend.restore({ from: path }))).toMatchObject({
				problem: "in-use",
			});
		});
		await backupFile({ path, to: directory.file("later.db"), runtime: world() });
	});
});
