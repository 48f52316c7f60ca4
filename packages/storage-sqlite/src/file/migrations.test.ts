import { spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { allArtists, artist, textOf } from "@plinth/storage/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { backupFile, restoreFile } from "../backup-restore/backup-restore.ts";
import { fileFailure, type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { createSqliteBackend } from "../sqlite-backend.ts";
import { migrate, schemaVersion, versionOf } from "./migrations.ts";
import { createVersion1 } from "./version-1.fixture.ts";

let directory: TestDirectory;
let path: string;

beforeEach(async () => {
	directory = await testDirectory();
	path = directory.file("storage.db");
	createVersion1(path, [artist("a", "one"), artist("b", "two")]);
});

afterEach(async () => {
	await directory[Symbol.asyncDispose]();
});

const context = { fresh: { uid: "a uid", incarnation: "an incarnation" } };

/** Opens the storage and returns its content and its identity. */
async function opened() {
	const backend = await createSqliteBackend({ path });
	const { resources, version } = await backend.list(allArtists);
	const { identity } = backend;
	await backend.close();
	return { version, identity, texts: resources.map(textOf) };
}

function fileVersion(): number {
	const database = new DatabaseSync(path, { readOnly: true });
	const version = versionOf(database);
	database.close();
	return version;
}

describe("a file of version 1", () => {
	it("is migrated when it is opened, and keeps its content", async () => {
		expect(fileVersion()).toBe(1);
		const { version, texts, identity } = await opened();
		expect({ version, texts }).toEqual({ version: "2", texts: ["one", "two"] });
		expect(identity).toMatchObject({ restores: 0, uid: expect.stringMatching(/^[0-9A-Z]{26}$/) });
		expect(fileVersion()).toBe(schemaVersion);
		expect((await opened()).identity).toEqual(identity);
	});

	it("is left unchanged if it is damaged", async () => {
		const database = new DatabaseSync(path);
		database.exec("DELETE FROM resources WHERE rowid = 1");
		database.close();
		const before = await readFile(path);
		expect(await fileFailure(createSqliteBackend({ path }))).toMatchObject({ problem: "damaged" });
		expect((await readFile(path)).equals(before)).toBe(true);
	});

	it("can be backed up and restored without being opened", async () => {
		const to = directory.file("backup.db");
		await backupFile({ path, to });
		expect(fileVersion()).toBe(1);
		await restoreFile({ path, from: to });
		expect((await opened()).texts).toEqual(["one", "two"]);
	});

	it("can be restored from, and replaced", async () => {
		const from = path;
		path = directory.file("other.db");
		await opened();
		await restoreFile({ path, from });
		expect(await opened()).toMatchObject({ texts: ["one", "two"], identity: { restores: 1 } });
		createVersion1(directory.file("replaced.db"), []);
		await restoreFile({ path: directory.file("replaced.db"), from });
	});
});

describe("a file of a newer version", () => {
	it("is refused and left unchanged, even if the version is only in the log", async () => {
		await opened();
		const newer = new DatabaseSync(path);
		newer.exec("PRAGMA user_version = 99");
		const files = await Promise.all([path, `${path}-wal`].map((file) => readFile(file)));
		const copy = directory.file("copy.db");
		await writeFile(copy, files[0] ?? "");
		await writeFile(`${copy}-wal`, files[1] ?? "");
		newer.close();
		path = copy;
		expect(files[0]?.readUInt32BE(60)).toBe(schemaVersion);
		expect(await fileFailure(createSqliteBackend({ path }))).toMatchObject({ problem: "newer" });
		expect((await readFile(path)).equals(files[0] ?? Buffer.alloc(0))).toBe(true);
		expect((await readFile(`${path}-wal`)).equals(files[1] ?? Buffer.alloc(0))).toBe(true);
	});
});

describe("a migration", () => {
	it("that fails leaves the previous version", () => {
		const database = new DatabaseSync(path);
		const steps = [
			(target: DatabaseSync) => target.exec("CREATE TABLE first (x)"),
			(target: DatabaseSync) => {
				target.exec("CREATE TABLE second (x)");
				throw new Error("on the way");
			},
		];
		expect(() => migrate(database, context, steps)).toThrow("on the way");
		const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
		expect(tables.map(({ name }) => name)).toEqual(["resources", "head", "first"]);
		expect(versionOf(database)).toBe(2);
		// The next migration continues from there.
		const again = [
			() => {
				throw new Error("done already");
			},
			(target: DatabaseSync) => target.exec("CREATE TABLE second (x)"),
		];
		migrate(database, context, again);
		expect(versionOf(database)).toBe(3);
		database.close();
	});

	it("that is killed leaves a file that the next start migrates", async () => {
		for (const at of ["begun", "committing"]) {
			const script = new URL("./killed-migration.fixture.ts", import.meta.url).pathname;
			const { signal } = spawnSync(process.execPath, [script, path, at]);
			expect(signal).toBe("SIGKILL");
			expect(fileVersion()).toBe(at === "begun" ? 1 : 2);
			expect((await opened()).texts).toEqual(["one", "two"]);
			path = directory.file(`after-${at}.db`);
			createVersion1(path, [artist("a", "one"), artist("b", "two")]);
		}
	});
});
