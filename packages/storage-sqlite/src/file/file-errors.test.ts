import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { allArtists, artist } from "@plinth/storage/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fileFailure, type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { createSqliteBackend } from "../sqlite-backend.ts";
import { fileError, isDiskFull, isOfStatement } from "./sqlite-failure.ts";

let directory: TestDirectory;
let path: string;

beforeEach(async () => {
	directory = await testDirectory();
	path = directory.file("storage.db");
});

afterEach(async () => {
	await directory[Symbol.asyncDispose]();
});

async function create(): Promise<void> {
	const backend = await createSqliteBackend({ path });
	await backend.commit([{ op: "put", resource: artist("a"), expectedVersion: "" }]);
	await backend.close();
}

describe("a storage that is reached over a link", () => {
	it("is the same storage: refused while the file is open, with the same content", async () => {
		await create();
		const link = directory.file("link.db");
		await symlink(path, link);
		await mkdir(directory.file("other"));
		await symlink(directory.path, directory.file("other/directory"));
		const names = [link, directory.file("other/directory/storage.db")];
		for (const [open, others] of [
			[path, names],
			[link, [path, ...names]],
		] as const) {
			const backend = await createSqliteBackend({ path: open });
			for (const other of others) {
				const failure = await fileFailure(createSqliteBackend({ path: other }));
				expect(failure).toMatchObject({ problem: "in-use", path });
			}
			expect((await backend.list(allArtists)).resources).toHaveLength(1);
			await backend.close();
		}
	});

	it("is not created if the link is broken, because a disk may be missing", async () => {
		await symlink(directory.file("missing.db"), path);
		const failure = await fileFailure(createSqliteBackend({ path }));
		expect(failure).toMatchObject({ problem: "unreachable" });
	});
});

describe("a storage locked by another program", () => {
	it("is reported as in use, not as damaged", async () => {
		await create();
		const other = new DatabaseSync(path);
		other.exec("PRAGMA locking_mode = EXCLUSIVE");
		other.exec("BEGIN IMMEDIATE; CREATE TABLE x (y); ROLLBACK");
		const failure = await fileFailure(createSqliteBackend({ path }));
		expect(failure).toMatchObject({ problem: "in-use" });
		expect(failure.message).not.toContain("damaged");
		other.close();
		await (await createSqliteBackend({ path })).close();
	});
});

describe("a storage that can't be reached", () => {
	it("is distinguished from a damaged one", async () => {
		await mkdir(path);
		expect(await fileFailure(createSqliteBackend({ path }))).toMatchObject({
			problem: "unreachable",
		});
		await mkdir(directory.file("locked.db.lock"));
		const locked = createSqliteBackend({ path: directory.file("locked.db") });
		expect(await fileFailure(locked)).toMatchObject({ problem: "unreachable" });
	});
});

describe("a storage on a full disk", () => {
	const noSpace = Object.assign(new Error("write"), { code: "ENOSPC", syscall: "write" });

	it.each([
		["SQLite", Object.assign(new Error("disk I/O error"), { errcode: 10 | (19 << 8) })],
		["the system", noSpace],
	])("is refused with the reason, if %s reports it", (_who, cause) => {
		const { problem, message } = fileError(path, cause);
		expect(problem).toBe("disk-full");
		expect(message).toContain("the disk is full");
		expect(message).toContain("nothing is lost");
	});
});

describe("a log whose file is gone", () => {
	it("is refused and left unchanged, since an empty storage would apply it", async () => {
		await writeFile(`${path}-wal`, "commits");
		expect(await fileFailure(createSqliteBackend({ path }))).toMatchObject({ problem: "damaged" });
		expect(await readFile(`${path}-wal`, "utf8")).toBe("commits");
	});
});

describe("an error of SQLite", () => {
	function sqlite(errcode: number): Error {
		return Object.assign(new Error("from SQLite"), { errcode });
	}

	it.each([
		["busy", 5, "in-use"],
		["busy, recovering", 5 | (1 << 8), "in-use"],
		["locked", 6, "in-use"],
		["an I/O error", 10, "unreachable"],
		["a failed read", 10 | (1 << 8), "unreachable"],
		["a read that ends early", 10 | (2 << 8), "damaged"],
		["no room for the index of the log", 10 | (19 << 8), "disk-full"],
		["full", 13, "disk-full"],
		["can't open", 14, "unreachable"],
		["can't open a directory", 14 | (2 << 8), "unreachable"],
		["corrupt", 11, "damaged"],
		["not a database", 26, "damaged"],
		["a missing table", 1, "damaged"],
	])("is reported as what it is: %s", (_name, code, problem) => {
		expect(fileError("x.db", sqlite(code))).toMatchObject({ problem, path: "x.db" });
	});

	it("is one of a statement, or of the disk", () => {
		for (const code of [1, 11, 11 | (1 << 8), 18, 19, 19 | (12 << 8), 20, 25]) {
			expect(isOfStatement(sqlite(code))).toBe(true);
		}
		for (const code of [5, 7, 8, 10, 10 | (2 << 8), 13, 14, 26]) {
			expect(isOfStatement(sqlite(code))).toBe(false);
		}
		expect(isOfStatement(new Error("not of SQLite"))).toBe(false);
	});

	it("is recognized as a full disk, in every form", () => {
		expect(isDiskFull(sqlite(13))).toBe(true);
		expect(isDiskFull(Object.assign(new Error("no space"), { code: "ENOSPC" }))).toBe(true);
		expect(isDiskFull(sqlite(10 | (19 << 8)))).toBe(true);
		expect(isDiskFull(sqlite(10))).toBe(false);
	});
});
