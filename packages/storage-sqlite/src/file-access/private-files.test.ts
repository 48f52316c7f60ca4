import { readdirSync, statSync } from "node:fs";
import { chmod, cp, lchown, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { artist } from "@plinth/storage/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { backupFile, restoreFile } from "../backup-restore/backup-restore.ts";
import { type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { createSqliteBackend } from "../sqlite-backend.ts";
import { makePrivate } from "./private-files.ts";

let directory: TestDirectory;
let path: string;
let umask: number;

beforeEach(async () => {
	directory = await testDirectory();
	path = directory.file("storage.db");
	// The most permissive umask.
	umask = process.umask(0);
});

afterEach(async () => {
	process.umask(umask);
	await directory[Symbol.asyncDispose]();
});

function modeOf(file: string): string {
	return (statSync(file).mode & 0o777).toString(8);
}

/** The permissions of all files of a folder, by name. */
async function modes(folder = directory.path): Promise<Readonly<Record<string, string>>> {
	const entries = await readdir(folder, { withFileTypes: true });
	const files = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
	return Object.fromEntries(files.map((name) => [name, modeOf(join(folder, name))]));
}

async function expectPrivate(atLeast: readonly string[]): Promise<void> {
	const found = await modes();
	expect(Object.keys(found)).toEqual(expect.arrayContaining([...atLeast]));
	expect(Object.entries(found).filter(([, mode]) => mode !== "600")).toEqual([]);
}

async function openWith(name: string) {
	const backend = await createSqliteBackend({ path });
	await backend.commit([{ op: "put", resource: artist(name, "x"), expectedVersion: "" }]);
	return backend;
}

describe("the files of a storage", () => {
	it("are private, including the log, the lock, backups and files replaced by restores", async () => {
		const backend = await openWith("miles");
		await expectPrivate(["storage.db", "storage.db-wal", "storage.db.lock"]);
		// More than one slice of a backup, so that its progress is reported meanwhile.
		await Promise.all(
			Array.from({ length: 2_000 }, (_, index) =>
				backend.commit([{ op: "put", resource: artist(`a${index}`, "x"), expectedVersion: "" }]),
			),
		);
		const meanwhile = new Set<string>();
		const progress = () => {
			for (const name of readdirSync(directory.path)) {
				meanwhile.add(`${name.replace(/-\w{26}/, "")} ${modeOf(directory.file(name))}`);
			}
		};
		await backend.backup({ to: directory.file("live.db"), progress });
		await expectPrivate(["live.db"]);
		await backend.restore({ from: directory.file("live.db"), progress });
		const replaced = Object.keys(await modes()).find((name) => name.includes(".replaced-"));
		await expectPrivate([replaced ?? "none was kept"]);
		expect([...meanwhile]).toEqual(expect.arrayContaining(["live.db.partial 600"]));
		expect([...meanwhile].filter((each) => !each.endsWith(" 600"))).toEqual([]);
		await backend.close();
	});

	it("are private after backups and restores of a closed storage", async () => {
		await (await openWith("miles")).close();
		await backupFile({ path, to: directory.file("closed.db") });
		await restoreFile({ path, from: directory.file("closed.db") });
		await restoreFile({ path: directory.file("other.db"), from: directory.file("closed.db") });
		await expectPrivate(["storage.db", "storage.db.lock", "closed.db", "other.db"]);
	});

	it("are tightened if others can read them, including the log of a killed process", async () => {
		const backend = await openWith("miles");
		const killed = directory.file("killed");
		await mkdir(killed);
		for (const name of ["storage.db", "storage.db-wal"]) {
			await cp(directory.file(name), join(killed, name));
		}
		await backend.close();
		const beside = ["storage.db.lock", "storage.db.replaced-01", "storage.db.replaced-01-wal"];
		for (const name of beside) {
			await writeFile(join(killed, name), "");
		}
		await writeFile(join(killed, "storage.dbx"), "of somebody else");
		for (const name of await readdir(killed)) {
			await chmod(join(killed, name), 0o644);
		}
		const again = await createSqliteBackend({ path: join(killed, "storage.db") });
		expect(await modes(killed)).toEqual({
			...{ "storage.db": "600", "storage.db-wal": "600", "storage.db-shm": "600" },
			"storage.db.lock": "600",
			...{ "storage.db.replaced-01": "600", "storage.db.replaced-01-wal": "600" },
			"storage.dbx": "644",
		});
		await again.close();
	});

	it.each([".lock", ".restored", ".restoring", ".new", "-wal"])(
		"are not made through a link that somebody planted: %s",
		async (suffix) => {
			const target = directory.file("elsewhere");
			await symlink(target, path + suffix);
			await expect(createSqliteBackend({ path })).rejects.toThrow(
				`storage ${path}: ${path}${suffix} is a symbolic link to "${target}", which the server did not create: remove it,`,
			);
			expect(await readdir(directory.path)).toEqual([`storage.db${suffix}`]);
		},
	);

	it("are not created if another user has created one first", async () => {
		await writeFile(path, "a diary");
		expect(() => makePrivate(path)).toThrow(`storage ${path}: the file already exists`);
		await symlink("elsewhere", directory.file("link"));
		expect(() => makePrivate(directory.file("link"))).toThrow(
			`${directory.file("link")} is a symbolic link to "elsewhere"`,
		);
		expect(await readFile(path, "utf8")).toBe("a diary");
	});

	it.skipIf(process.getuid?.() !== 0)(
		"are not looked for through another user's link in a shared directory",
		async () => {
			const shared = directory.file("shared");
			await mkdir(shared);
			await mkdir(directory.file("real"));
			await symlink(directory.file("real"), join(shared, "data"));
			await lchown(join(shared, "data"), 65534, 65534);
			const storage = join(shared, "data", "storage.db");
			await chmod(shared, 0o1777);
			await expect(createSqliteBackend({ path: storage })).rejects.toThrow(
				`storage ${storage}: ${join(shared, "data")} is a symbolic link of user 65534, in a directory that others may write to: remove it,`,
			);
			expect(await readdir(directory.file("real"))).toEqual([]);
			// No other user could have created it here.
			await chmod(shared, 0o755);
			await (await createSqliteBackend({ path: storage })).close();
		},
	);

	it("are left unchanged if they are not a storage", async () => {
		await writeFile(
			path,
			"a diary, as long as the header of a database is, which is a hundred bytes.".repeat(2),
		);
		await chmod(path, 0o644);
		await expect(createSqliteBackend({ path })).rejects.toThrow("not a SQLite database");
		expect((await modes())["storage.db"]).toBe("644");
	});
});
