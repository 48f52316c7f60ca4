import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { silentLogger, systemRandom, systemScheduler } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { VersionCompacted } from "@plinth/storage";
import { allArtists, artist, WatchReader } from "@plinth/storage/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSqliteBackend } from "./sqlite-backend.ts";
import { StorageFileError } from "./storage-file-error.ts";

let directory: string;
let path: string;

beforeEach(async () => {
	directory = await mkdtemp(join(tmpdir(), "plinth-sqlite-"));
	path = join(directory, "storage.db");
});

afterEach(async () => {
	await rm(directory, { recursive: true });
});

/** Opens the storage, for as long as the body takes. */
async function opened<T>(
	body: (backend: Awaited<ReturnType<typeof createSqliteBackend>>) => Promise<T>,
): Promise<T> {
	const backend = await createSqliteBackend({ path });
	try {
		return await body(backend);
	} finally {
		await backend.close();
	}
}

/** The error of opening; closes the storage if opening succeeds. */
async function refusal(): Promise<StorageFileError> {
	try {
		await (await createSqliteBackend({ path })).close();
	} catch (error) {
		if (error instanceof StorageFileError) {
			return error;
		}
		throw error;
	}
	throw new Error("the storage was opened");
}

describe("a storage that is opened again", () => {
	it("has everything that was committed, at the versions of the commits", async () => {
		const before = await opened(async (backend) => {
			for (let count = 0; count < 700; count++) {
				await backend.commit([
					{ op: "put", resource: artist(`a${count}`, "x".repeat(count)), expectedVersion: "" },
				]);
			}
			return backend.list(allArtists);
		});
		expect(before.resources).toHaveLength(700);
		expect(await opened((backend) => backend.list(allArtists))).toEqual(before);
	});

	it("never issues a revision twice, even if the newest was a deletion", async () => {
		const deletion = await opened(async (backend) => {
			const { version, resources } = await backend.commit([
				{ op: "put", resource: artist("a"), expectedVersion: "" },
			]);
			const id = resources[0]?.id;
			expect(id).toBeDefined();
			return id && backend.commit([{ op: "delete", id, expectedVersion: version }]);
		});
		await opened(async (backend) => {
			expect((await backend.list(allArtists)).version).toBe(deletion?.version);
			const { version } = await backend.commit([
				{ op: "put", resource: artist("a"), expectedVersion: "" },
			]);
			expect(Number(version)).toBeGreaterThan(Number(deletion?.version));
		});
	});

	it("resumes watches only after the version at which it was closed", async () => {
		const { version } = await opened(async (backend) => {
			await backend.commit([{ op: "put", resource: artist("a"), expectedVersion: "" }]);
			return backend.commit([{ op: "put", resource: artist("b"), expectedVersion: "" }]);
		});
		await opened(async (backend) => {
			const next = new WatchReader(backend, allArtists, { afterVersion: version }).next();
			await backend.commit([{ op: "put", resource: artist("c"), expectedVersion: "" }]);
			expect(await next).toMatchObject({ kind: "upsert", resource: { id: { name: "c" } } });
			for (const afterVersion of ["1", "999"]) {
				const watch = new WatchReader(backend, allArtists, { afterVersion });
				await expect(watch.next()).rejects.toBeInstanceOf(VersionCompacted);
			}
		});
	});

	it("lists loaded resources by owner", async () => {
		const owner = artist("owner").id;
		const owned = { ...artist("owned"), ...(owner && { owner }) };
		await opened((backend) =>
			backend.commit([{ op: "put", resource: owned, expectedVersion: "" }]),
		);
		await opened(async (backend) => {
			expect(owner && (await backend.listByOwner(owner))).toHaveLength(1);
		});
	});
});

describe("a file that is open already", () => {
	it("can be opened again in the same process only after it is closed", async () => {
		await opened(async () => {
			expect(await refusal()).toMatchObject({ problem: "in-use", path });
		});
		await opened(async () => {});
	});

	it("can be opened by another process only after its owner was killed", async () => {
		const owner = spawn(process.execPath, [
			new URL("./crash/crash-writer.fixture.ts", import.meta.url).pathname,
			path,
			"1",
		]);
		await once(owner.stdout, "data");
		expect(await refusal()).toMatchObject({ problem: "in-use" });
		owner.kill("SIGKILL");
		await once(owner, "exit");
		await opened(async () => {});
	});
});

describe("a storage that is being opened", () => {
	it("yields to the event loop, logs its progress, and stops at its signal", async () => {
		await opened((backend) =>
			Promise.all(
				Array.from({ length: 1000 }, (_, index) =>
					backend.commit([{ op: "put", resource: artist(`a${index}`), expectedVersion: "" }]),
				),
			),
		);
		const clock = new FakeClock();
		const runtime = { clock, random: systemRandom, scheduler: systemScheduler };
		const stop = new AbortController();
		const logged: unknown[] = [];
		const info = (fields: Readonly<Record<string, unknown>>) => {
			logged.push(fields);
			stop.abort(new Error("enough"));
		};
		// Time passes with each iteration of the event loop.
		const turns = setInterval(() => clock.advance(1000), 0);
		try {
			const logger = { ...silentLogger, info };
			const opening = createSqliteBackend({ path, runtime, logger, signal: stop.signal });
			await expect(opening).rejects.toThrow("enough");
		} finally {
			clearInterval(turns);
		}
		expect(logged).toEqual([{ path, loaded: expect.any(Number), resources: 1000 }]);
		await opened(async (backend) => {
			expect((await backend.list(allArtists)).resources).toHaveLength(1000);
		});
	});
});

describe("a file that is not a storage", () => {
	it("is refused and left unchanged", async () => {
		const other = join(directory, "other.db");
		const database = new DatabaseSync(other);
		database.exec("CREATE TABLE resources (key TEXT)");
		database.close();
		const contents = ["", "not a database", "x".repeat(5000), await readFile(other)];
		for (const content of contents) {
			await writeFile(path, content);
			expect(await refusal()).toMatchObject({ problem: "foreign" });
			expect(await readFile(path)).toEqual(Buffer.from(content));
		}
	});

	it("is refused if a newer Plinth wrote it", async () => {
		await opened(async () => {});
		const database = new DatabaseSync(path);
		database.exec("PRAGMA user_version = 99");
		database.close();
		const content = await readFile(path);
		expect(await refusal()).toMatchObject({ problem: "newer" });
		expect(await readFile(path)).toEqual(content);
	});

	it("is refused if its directory is missing", async () => {
		path = join(directory, "missing", "storage.db");
		expect(await refusal()).toMatchObject({ problem: "unreachable" });
	});
});

describe("a storage whose rows were tampered with", () => {
	it("is refused for an old version of a row", async () => {
		const first = await opened((backend) =>
			backend.commit([{ op: "put", resource: artist("a", "old"), expectedVersion: "" }]),
		);
		let database = new DatabaseSync(path);
		database.exec("CREATE TABLE old AS SELECT * FROM resources");
		database.close();
		await opened((backend) =>
			backend.commit([{ op: "put", resource: artist("a", "new"), expectedVersion: first.version }]),
		);
		database = new DatabaseSync(path);
		database.exec("DELETE FROM resources; INSERT INTO resources SELECT * FROM old");
		database.close();
		expect(await refusal()).toMatchObject({ problem: "damaged" });
	});

	const tampering: Readonly<Record<string, string>> = {
		"a changed body": "UPDATE resources SET body = zeroblob(length(body)) WHERE rowid = 3",
		"a changed key": "UPDATE resources SET key = key || 'x' WHERE rowid = 3",
		"a changed revision": "UPDATE resources SET revision = revision - 1 WHERE rowid = 3",
		"a lost row": "DELETE FROM resources WHERE rowid = 3",
		"a changed head": "UPDATE head SET revision = revision + 1",
		"a lost head": "DELETE FROM head",
		"a lost table": "DROP TABLE resources",
	};
	for (const [what, statement] of Object.entries(tampering)) {
		it(`is refused for ${what}, and left unchanged`, async () => {
			await opened(async (backend) => {
				for (const name of ["a", "b", "c", "d"]) {
					await backend.commit([{ op: "put", resource: artist(name), expectedVersion: "" }]);
				}
			});
			const database = new DatabaseSync(path);
			database.exec(statement);
			database.close();
			await copyFile(path, `${path}.copy`);
			expect(await refusal()).toMatchObject({ problem: "damaged" });
			expect(await readFile(path)).toEqual(await readFile(`${path}.copy`));
		});
	}
});
