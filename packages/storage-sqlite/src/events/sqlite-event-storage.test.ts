import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, open as openFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { silentLogger, systemRandom, systemScheduler } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { type EventRow, type EventStorage, StorageUnavailable } from "@plinth/storage";
import { ArtistWatch, artist, listArtists, putArtist } from "@plinth/storage/testing";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { backupFile, restoreFile } from "../backup-restore/backup-restore.ts";
import { type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { schemaVersion, versionOf } from "../file/migrations.ts";
import { checkWhole } from "../file/storage-reader.ts";
import { createVersion1 } from "../file/version-1.fixture.ts";
import { createSqliteBackend, type SqliteBackend } from "../sqlite-backend.ts";
import { WriteFailure } from "../thread/storage-thread.ts";
import { SqliteEventStorage } from "./sqlite-event-storage.ts";

const hour = { ttlMs: 3_600_000 };

let directory: TestDirectory;
let path: string;
let clock: FakeClock;
/** What is open, in the order of opening. */
let backends: SqliteBackend[];
/** What the storages have warned of. */
let warnings: string[];

beforeEach(async () => {
	directory = await testDirectory();
	path = directory.file("storage.db");
	clock = new FakeClock();
	backends = [];
	warnings = [];
});

afterEach(async () => {
	await closeAll();
	await directory[Symbol.asyncDispose]();
});

async function closeAll(): Promise<void> {
	await Promise.all(backends.map((backend) => backend.close()));
}

async function open(): Promise<SqliteBackend> {
	const runtime = { clock, random: systemRandom, scheduler: systemScheduler };
	const logger = { ...silentLogger, warn: (_: object, text: string) => warnings.push(text) };
	const backend = await createSqliteBackend({ path, runtime, logger });
	backends.push(backend);
	return backend;
}

async function reopen(): Promise<SqliteBackend> {
	await closeAll();
	return open();
}

function row(key: string, body = "body"): EventRow {
	return { key, body: Buffer.from(body) };
}

/** The keys that are stored now. */
async function keysOf(events: EventStorage): Promise<readonly string[]> {
	for await (const rows of events.follow(new AbortController().signal)) {
		return rows.map(({ key }) => key);
	}
	throw new Error("it has ended without rows");
}

/** The keys in a file that is closed, expired ones included; `undefined` if it has no table for them. */
function keysIn(file: string): readonly unknown[] | undefined {
	const database = new DatabaseSync(file, { readOnly: true });
	try {
		const tables = database.prepare("SELECT name FROM sqlite_schema WHERE name = 'events'").all();
		return tables.length === 0
			? undefined
			: database
					.prepare("SELECT key FROM events ORDER BY key")
					.all()
					.map(({ key }) => key);
	} finally {
		database.close();
	}
}

describe("events that expire", () => {
	it("are not read, and are deleted by the next write", async () => {
		const { events } = await open();
		await events.write([row("old"), row("renewed")], { ttlMs: 100 });
		await clock.advanceAsync(60);
		await events.write([row("renewed")], { ttlMs: 100 });
		await clock.advanceAsync(60);
		expect(await keysOf(events)).toEqual(["renewed"]);
		await closeAll();
		expect(keysIn(path)).toEqual(["old", "renewed"]);
		const again = await open();
		await clock.advanceAsync(60);
		await again.events.write([row("new")], { ttlMs: 100 });
		await closeAll();
		expect(keysIn(path)).toEqual(["new"]);
	});

	it("are deleted when the file is opened", async () => {
		const { events } = await open();
		await events.write([row("old")], { ttlMs: 100 });
		await events.write([row("kept")], hour);
		await closeAll();
		await clock.advanceAsync(100);
		await open();
		await closeAll();
		expect(keysIn(path)).toEqual(["kept"]);
	});
});

describe("a file", () => {
	it("of an older version opens, and gets a table of events with the first row", async () => {
		createVersion1(path, [artist("a", "one")]);
		const { events } = await open();
		await events.write([{ key: "missing", body: undefined }], hour);
		await closeAll();
		expect(keysIn(path)).toBeUndefined();
		const backend = await open();
		await backend.events.write([row("a")], hour);
		expect(await listArtists(backend)).toEqual(["a=one"]);
		expect(await keysOf((await reopen()).events)).toEqual(["a"]);
	});

	it("with events has the same version and the same head as one without", async () => {
		const backend = await open();
		const head = () => {
			const database = new DatabaseSync(path, { readOnly: true });
			const found = {
				version: versionOf(database),
				head: database.prepare("SELECT * FROM head").get(),
			};
			database.close();
			return found;
		};
		await backend.commit([putArtist("a", "one")]);
		await closeAll();
		const before = head();
		await (await open()).events.write([row("a"), row("b")], hour);
		await closeAll();
		expect(keysIn(path)).toEqual(["a", "b"]);
		expect(head()).toEqual(before);
		expect(checkWhole(path)).toBe(schemaVersion);
	});
});

describe("resources beside events", () => {
	it("keep their versions, and no watch of them sees an event", async () => {
		const backend = await open();
		const first = await backend.commit([putArtist("a", "one")]);
		const watch = new ArtistWatch(backend, first.version);
		onTestFinished(() => watch.end());
		const commits = Array.from({ length: 50 }, (_, index) => putArtist(`b${index}`, "two"));
		const results = await Promise.all(
			commits.map(async (commit, index) => {
				const writing = backend.events.write([row(`row-${index}`)], hour);
				const { version } = await backend.commit([commit]);
				await writing;
				return Number(version) - Number(first.version);
			}),
		);
		expect(results).toEqual(commits.map((_, index) => index + 1));
		for (const [index] of commits.entries()) {
			expect(await watch.next()).toBe(`upsert b${index}=two`);
		}
		const again = await reopen();
		expect(await listArtists(again)).toHaveLength(51);
		expect(await keysOf(again.events)).toHaveLength(50);
		await again.commit([putArtist("c")]);
	});
});

describe("backups and restores", () => {
	it("leave events out: a restored storage starts without them, and ends what follows", async () => {
		const backup = directory.file("backup.db");
		const backend = await open();
		await backend.commit([putArtist("a", "one")]);
		await backend.events.write([row("a")], hour);
		await backend.backup({ to: backup });
		expect(keysIn(backup)).toBeUndefined();
		const rows = backend.events.follow(new AbortController().signal)[Symbol.asyncIterator]();
		await rows.next();
		const ended = expect(rows.next()).rejects.toThrow(StorageUnavailable);
		await backend.restore({ from: backup });
		await ended;
		expect(await keysOf(backend.events)).toEqual([]);
		await backend.events.write([row("b")], hour);
		expect(await keysOf(backend.events)).toEqual(["b"]);
		const again = await reopen();
		expect(await keysOf(again.events)).toEqual(["b"]);
		expect(await listArtists(again)).toEqual(["a=one"]);
	});

	it("of a closed storage leave events out too", async () => {
		const backup = directory.file("backup.db");
		const { events } = await open();
		await events.write([row("a")], hour);
		await closeAll();
		await backupFile({ path, to: backup });
		expect(keysIn(backup)).toBeUndefined();
		await restoreFile({ path, from: path });
		expect(keysIn(path)).toBeUndefined();
		expect(await keysOf((await open()).events)).toEqual([]);
	});
});

describe("reading events", () => {
	it("returns all rows together, of more than one page", async () => {
		const { events } = await open();
		const keys = Array.from({ length: 700 }, (_, index) => `row-${index + 100}`);
		for (let begin = 0; begin < keys.length; begin += 100) {
			await events.write(
				keys.slice(begin, begin + 100).map((key) => row(key, "x".repeat(2000))),
				hour,
			);
		}
		const reading = keysOf(events);
		await events.write([row("row-750"), row("zzz"), { key: "row-100", body: undefined }], hour);
		expect(await reading).toEqual(keys);
		expect(await keysOf(events)).toEqual([...keys.slice(1), "zzz"]);
	});

	it("ends as unavailable when the storage is closed, after which writes are refused", async () => {
		const { events } = await open();
		const rows = events.follow(new AbortController().signal)[Symbol.asyncIterator]();
		await rows.next();
		const ended = expect(rows.next()).rejects.toThrow(
			new StorageUnavailable("the storage is closed"),
		);
		await closeAll();
		await ended;
		await expect(events.write([row("a")], hour)).rejects.toThrow(StorageUnavailable);
		await expect(keysOf(events)).rejects.toThrow(StorageUnavailable);
	});

	it("that has begun when the storage is closed settles, as writes do", async () => {
		const backend = await open();
		const writing = backend.events.write([row("a")], hour).catch((error: unknown) => error);
		const reading = keysOf(backend.events).catch((error: unknown) => error);
		await backend.close();
		expect([undefined, expect.any(StorageUnavailable)]).toContainEqual(await writing);
		expect(await reading).toBeInstanceOf(StorageUnavailable);
	});
});

describe("a write of events that fails", () => {
	function failing(error: Error) {
		const broken: unknown[] = [];
		const events = new SqliteEventStorage({
			thread: {
				writeEvents: () => Promise.reject(error),
				readEvents: () => Promise.reject(error),
			},
			groups: { alone: (action) => action(), break: (failure) => broken.push(failure) },
			clock,
		});
		return { events, broken };
	}

	it("because the disk is full leaves the storage in use", async () => {
		const { events, broken } = failing(new WriteFailure("no space", true));
		for (const _ of [1, 2]) {
			await expect(events.write([row("a")], hour)).rejects.toThrow(
				new StorageUnavailable("the disk of the storage is full: no space"),
			);
		}
		expect(broken).toEqual([]);
	});

	it("for another reason ends commits too, as a failed commit does", async () => {
		const { events, broken } = failing(new WriteFailure("no sync", false));
		await expect(events.write([row("a")], hour)).rejects.toThrow(StorageUnavailable);
		expect(broken).toEqual([expect.any(StorageUnavailable)]);
	});

	it("because of the table of events leaves the storage in use", async () => {
		const { events, broken } = failing(new WriteFailure("no such column", false, true));
		await expect(events.write([row("a")], hour)).rejects.toThrow(
			new StorageUnavailable("the table of events can't be written: no such column"),
		);
		expect(broken).toEqual([]);
	});

	it("leaves commits alone if it was only a read", async () => {
		const { events, broken } = failing(new Error("no read"));
		await expect(keysOf(events)).rejects.toThrow(StorageUnavailable);
		expect(broken).toEqual([]);
	});
});

describe("a file whose table of events has other columns", () => {
	/** The statements replace the table. */
	async function withTable(statements: string): Promise<void> {
		const backend = await open();
		await backend.commit([putArtist("a", "one")]);
		await backend.events.write([row("a")], hour);
		await closeAll();
		const database = new DatabaseSync(path);
		database.exec(`DROP TABLE events; ${statements}`);
		database.close();
	}

	it.each([
		["none that is known", "CREATE TABLE events (x TEXT)"],
		[
			"one that no write fills",
			"CREATE TABLE events (key TEXT PRIMARY KEY, expires, body, x NOT NULL)",
		],
		["another type", "CREATE TABLE events (key TEXT PRIMARY KEY, expires INT, body INT) STRICT"],
	])("opens, accepts commits and keeps no events: %s", async (_, statements) => {
		await withTable(statements);
		const backend = await open();
		for (const name of ["b", "c"]) {
			const failed = await Promise.allSettled([
				backend.events.write([row("a")], hour),
				backend.commit([putArtist(name, "one")]),
			]);
			expect(failed).toEqual([
				{ status: "rejected", reason: expect.any(StorageUnavailable) },
				{ status: "fulfilled", value: expect.anything() },
			]);
		}
		expect(await listArtists(await reopen())).toEqual(["a=one", "b=one", "c=one"]);
	});

	it("says so in the log when it is opened", async () => {
		await withTable("CREATE TABLE events (x TEXT)");
		await open();
		expect(warnings).toEqual([
			expect.stringContaining("expired events can't be deleted: the table of events"),
		]);
	});
});

describe("a table of events that is damaged while the file is open", () => {
	it("refuses writes, while commits go on", async () => {
		await (await open()).events.write([row("a")], hour);
		const backend = await reopen();
		const copy = directory.file("copy.db");
		await copyFile(path, copy);
		const database = new DatabaseSync(copy);
		const size = Number(database.prepare("PRAGMA page_size").get()?.page_size);
		const pages = database
			.prepare("SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'events'")
			.all()
			.map(({ rootpage }) => Number(rootpage));
		database.close();
		const file = await openFile(path, "r+");
		for (const page of pages) {
			await file.write(Buffer.alloc(size, 0xff), 0, size, (page - 1) * size);
		}
		await file.close();
		await expect(backend.events.write([row("b")], hour)).rejects.toThrow(
			"the table of events can't be written: database disk image is malformed",
		);
		await backend.commit([putArtist("a", "one")]);
		expect(await listArtists(backend)).toEqual(["a=one"]);
	});
});

describe("a process that is killed while it writes events", () => {
	it("loses no write that has resolved, and leaves none in part", async () => {
		const script = new URL("./killed-events.fixture.ts", import.meta.url).pathname;
		const writer = spawn(process.execPath, [script, path], {
			stdio: ["ignore", "pipe", "inherit"],
		});
		const exited = once(writer, "exit");
		let written = 0;
		for await (const line of createInterface({ input: writer.stdout })) {
			written = Number(line);
			if (written === 20) {
				writer.kill("SIGKILL");
			}
		}
		await exited;
		const backend = await createSqliteBackend({ path });
		backends.push(backend);
		const { value } = await backend.events
			.follow(new AbortController().signal)
			[Symbol.asyncIterator]()
			.next();
		const [a, b] = value.map(({ body }: EventRow) => Number(Buffer.from(body ?? []).toString()));
		expect(a).toBe(b);
		expect(a).toBeGreaterThanOrEqual(written);
		expect(written).toBeGreaterThanOrEqual(20);
		expect(await listArtists(backend)).toHaveLength(1);
	});
});
