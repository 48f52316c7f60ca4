import { chmod, open, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { type Mutation, type StorageBackend, StorageUnavailable } from "@plinth/storage";
import { allArtists, artist, textOf } from "@plinth/storage/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fileFailure, type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { createSqliteBackend, type SqliteBackend } from "../sqlite-backend.ts";
import { backupFile, restoreFile } from "./backup-restore.ts";

let directory: TestDirectory;
let path: string;
let to: string;

beforeEach(async () => {
	directory = await testDirectory();
	path = directory.file("storage.db");
	to = directory.file("backup.db");
});

afterEach(async () => {
	await directory[Symbol.asyncDispose]();
});

async function opened<T>(body: (backend: SqliteBackend) => Promise<T>): Promise<T> {
	const backend = await createSqliteBackend({ path });
	try {
		return await body(backend);
	} finally {
		await backend.close();
	}
}

async function fill(backend: StorageBackend, count: number, text = ""): Promise<void> {
	const names = Array.from({ length: count }, (_, index) => `a${index}`);
	await Promise.all(
		names.map((name) =>
			backend.commit([{ op: "put", resource: artist(name, text), expectedVersion: "" }]),
		),
	);
}

/** The names and texts in a backup, which is restored elsewhere to be read. */
async function contentOf(from: string): Promise<Map<string, string>> {
	const elsewhere = directory.file("elsewhere.db");
	await restoreFile({ path: elsewhere, from });
	const backend = await createSqliteBackend({ path: elsewhere });
	const { resources } = await backend.list(allArtists);
	await backend.close();
	return new Map(resources.map((each) => [each.id?.name ?? "", textOf(each)]));
}

async function files(): Promise<string[]> {
	return (await readdir(directory.path)).filter((name) => /partial|backup/.test(name)).sort();
}

describe("a backup of an open storage", () => {
	it("has the committed state, whatever was committed meanwhile: puts, replacements, deletions", async () => {
		await opened(async (backend) => {
			await fill(backend, 3000);
			let done = false;
			const backup = backend.backup({ to }).finally(() => {
				done = true;
			});
			// One commit writes both halves of the pair, whose names are far apart.
			for (let step = 1; !done; step++) {
				const [left, right] = ["a1", "z1"].map((name) => artist(name, String(step)));
				expect(left?.id && right?.id).toBeDefined();
				const before = await Promise.all(
					[left, right].map((each) => each?.id && backend.read(each.id).catch(() => undefined)),
				);
				const deletes = step % 5 === 0;
				await backend.commit(
					[left, right].flatMap((resource, index): Mutation[] => {
						const expectedVersion = before[index]?.version ?? "";
						if (resource?.id === undefined) {
							return [];
						}
						return deletes && expectedVersion !== ""
							? [{ op: "delete", id: resource.id, expectedVersion }]
							: [{ op: "put", resource, expectedVersion }];
					}),
				);
				await setImmediate();
			}
			const report = await backup;
			const now = await backend.list(allArtists);
			expect(Number(report.version)).toBeLessThanOrEqual(Number(now.version));
			expect(report.identity).toEqual(backend.identity);
			const content = await contentOf(to);
			expect(content.size).toBe(report.resources);
			expect(content.get("a1")).toBe(content.get("z1"));
			for (const { id } of now.resources) {
				expect(content.has(id?.name ?? "") || ["a1", "z1"].includes(id?.name ?? "")).toBe(true);
			}
		});
	});

	it("reports its progress up to the end", async () => {
		await opened(async (backend) => {
			await fill(backend, 1000);
			const progress: number[] = [];
			const report = await backend.backup({
				to,
				progress: ({ resources, total }) => {
					expect(total).toBe(1000);
					progress.push(resources);
				},
			});
			expect(progress.length).toBeGreaterThan(2);
			expect(progress.at(-1)).toBe(report.resources);
			expect(progress).toEqual([...progress].sort((a, b) => a - b));
		});
	});

	it("leaves nothing when it is aborted, and can be run again", async () => {
		await opened(async (backend) => {
			await fill(backend, 2000);
			const aborting = new AbortController();
			const reason = new Error("enough");
			const aborted = backend.backup({
				to,
				signal: aborting.signal,
				progress: () => aborting.abort(reason),
			});
			await expect(aborted).rejects.toBe(reason);
			expect(await files()).toEqual([]);
			await expect(backend.backup({ to, signal: aborting.signal })).rejects.toBe(reason);
			expect((await backend.backup({ to })).resources).toBe(2000);
			expect(await files()).toEqual(["backup.db"]);
		});
	});

	it("fails with what its progress callback throws", async () => {
		await opened(async (backend) => {
			await fill(backend, 2000);
			const failing = backend.backup({
				to,
				progress: () => {
					throw new RangeError("from the callback");
				},
			});
			await expect(failing).rejects.toThrow("from the callback");
			expect(await files()).toEqual([]);
		});
	});

	it("is refused if the name exists, and leaves that file unchanged", async () => {
		await opened(async (backend) => {
			await writeFile(to, "mine");
			expect(await fileFailure(backend.backup({ to }))).toMatchObject({ problem: "exists" });
			expect(await files()).toEqual(["backup.db"]);
		});
	});

	it("is refused if its directory is missing", async () => {
		await opened(async (backend) => {
			const failure = await fileFailure(backend.backup({ to: directory.file("missing/b.db") }));
			expect(failure.problem).toBe("unreachable");
		});
	});

	it("ends when the storage is closed, and leaves nothing", async () => {
		const backend = await createSqliteBackend({ path });
		await fill(backend, 2000);
		let closing: Promise<void> | undefined;
		const backup = backend.backup({
			to,
			progress: () => {
				closing ??= backend.close();
			},
		});
		await expect(backup).rejects.toBeInstanceOf(StorageUnavailable);
		await closing;
		expect(await files()).toEqual([]);
	});

	it("is refused while another one runs", async () => {
		await opened(async (backend) => {
			const first = backend.backup({ to });
			const second = backend.backup({ to: directory.file("second.db") });
			expect(await fileFailure(second)).toMatchObject({ problem: "in-use" });
			await first;
		});
	});

	it("is refused if the storage is damaged meanwhile, and the storage stays in use", async () => {
		await opened((backend) => fill(backend, 1000, "x".repeat(500)));
		// Damage after the storage was opened: bytes of rows change in the file.
		const backend = await createSqliteBackend({ path });
		const content = await readFile(path);
		const row = "x".repeat(500);
		// In place: a file that is written as a whole is empty for an instant, and the storage looks at it when idle.
		await using file = await open(path, "r+");
		for (let at = content.indexOf(row); at >= 0; at = content.indexOf(row, at + 500)) {
			await file.write("y", at + 10);
		}
		const outcome = await fileFailure(backend.backup({ to }));
		expect(outcome.problem).toBe("damaged");
		expect(await files()).toEqual([]);
		await backend.commit([{ op: "put", resource: artist("new"), expectedVersion: "" }]);
		await backend.close();
	});
});

describe("a backup of a closed storage", () => {
	it("has the committed state", async () => {
		const { version } = await opened(async (backend) => {
			await fill(backend, 1500, "text");
			return backend.list(allArtists);
		});
		expect(await backupFile({ path, to })).toMatchObject({ version, resources: 1500 });
		expect((await contentOf(to)).get("a7")).toBe("text");
	});

	it("is refused while the storage is open, if the name exists, and if there is no storage", async () => {
		await opened(async () => {
			expect(await fileFailure(backupFile({ path, to }))).toMatchObject({ problem: "in-use" });
		});
		await writeFile(to, "mine");
		expect(await fileFailure(backupFile({ path, to }))).toMatchObject({ problem: "exists" });
		const missing = directory.file("missing.db");
		const failure = fileFailure(backupFile({ path: missing, to: directory.file("new.db") }));
		expect(await failure).toMatchObject({ problem: "unreachable" });
		expect(await files()).toEqual(["backup.db"]);
	});
});

describe("the file of a backup", () => {
	it("is not opened as a storage, which would issue old versions again", async () => {
		await opened(async (backend) => {
			await backend.backup({ to });
		});
		const failure = await fileFailure(createSqliteBackend({ path: to }));
		expect(failure).toMatchObject({ problem: "backup" });
		expect(failure.message).toContain("restore");
	});

	it("has the permissions of the storage", async () => {
		await opened(async (backend) => {
			await chmod(path, 0o600);
			await backend.backup({ to });
		});
		expect((await stat(to)).mode & 0o777).toBe(0o600);
		await restoreFile({ path, from: to });
		expect((await stat(path)).mode & 0o777).toBe(0o600);
	});
});
