import { cp, mkdir, mkdtemp, open, readFile, rm, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Random } from "@plinth/runtime";
import { expect } from "vitest";
import { createSqliteBackend } from "../sqlite-backend.ts";
import { StorageFileError } from "../storage-file-error.ts";
import {
	expectPrefix,
	newProgress,
	noteSurvivors,
	type WriterProgress,
	writeUntilKilled,
} from "./crash-workload.fixture.ts";

/**
 * Repeatedly kills a process that writes to one file, and checks each time that everything acknowledged is
 * stored, and no partial commit.
 */
export async function crashRounds(rounds: number, random: Random): Promise<void> {
	await inDirectory(async (directory) => {
		const path = join(directory, "storage.db");
		const progress = newProgress();
		for (let round = 0; round < rounds; round++) {
			await writeAWhile(path, progress, random);
			const backend = await createSqliteBackend({ path });
			expect(await expectPrefix(backend, progress)).toBeGreaterThanOrEqual(progress.newest);
			await noteSurvivors(backend, progress);
			await backend.close();
		}
	});
}

/**
 * Damages a file of the storage of a killed process, and checks that the storage then has a prefix of the
 * acknowledged steps, or is refused and left unchanged. Damage to the main file must not lose anything
 * without being refused.
 */
export async function damageRounds(rounds: number, random: Random): Promise<void> {
	await inDirectory(async (directory) => {
		const original = join(directory, "original");
		await mkdir(original);
		const progress = newProgress();
		const path = join(original, "storage.db");
		for (let round = 0; round < rounds; round++) {
			await writeAWhile(path, progress, random);
			for (const suffix of ["-wal", ""]) {
				const damaged = join(directory, "damaged");
				await cp(original, damaged, { recursive: true });
				await damage(join(damaged, `storage.db${suffix}`), random);
				await expectPrefixOrRefusal(join(damaged, "storage.db"), progress, suffix === "");
				await rm(damaged, { recursive: true });
			}
			const backend = await createSqliteBackend({ path });
			expect(await expectPrefix(backend, progress)).toBeGreaterThanOrEqual(progress.newest);
			await noteSurvivors(backend, progress);
			// Closing moves the write-ahead log into the main file.
			await backend.close();
		}
	});
}

async function writeAWhile(path: string, progress: WriterProgress, random: Random): Promise<void> {
	const writers = 1 + Math.floor(random.next() * 8);
	await writeUntilKilled(path, progress, { writers, killAfterMs: random.next() * 150 });
}

async function expectPrefixOrRefusal(
	path: string,
	progress: WriterProgress,
	main: boolean,
): Promise<void> {
	const before = await readFile(path);
	let backend: Awaited<ReturnType<typeof createSqliteBackend>>;
	try {
		backend = await createSqliteBackend({ path });
	} catch (error) {
		if (!(error instanceof StorageFileError)) {
			throw error;
		}
		expect(["damaged", "foreign", "newer"]).toContain(error.problem);
		expect(error.message).toContain("left as it is");
		expect((await readFile(path)).equals(before)).toBe(true);
		return;
	}
	const version = await expectPrefix(backend, progress);
	if (main) {
		expect(version).toBeGreaterThanOrEqual(progress.newest);
		await noteSurvivors(backend, progress);
	}
	await backend.close();
}

/** Truncates a file, or changes some of its bytes. */
async function damage(path: string, random: Random): Promise<void> {
	const size = (await stat(path).catch(() => undefined))?.size ?? 0;
	if (size === 0) {
		return;
	}
	const somewhere = () => Math.floor(random.next() * size);
	if (random.next() < 0.3) {
		await truncate(path, somewhere());
		return;
	}
	const file = await open(path, "r+");
	try {
		const bytes = Buffer.alloc(1 + Math.floor(random.next() * 16));
		const at = somewhere();
		await file.read(bytes, 0, bytes.length, at);
		for (const [index, byte] of bytes.entries()) {
			bytes[index] = byte ^ (1 + Math.floor(random.next() * 255));
		}
		await file.write(bytes, 0, Math.min(bytes.length, size - at), at);
	} finally {
		await file.close();
	}
}

async function inDirectory(body: (directory: string) => Promise<void>): Promise<void> {
	const directory = await mkdtemp(join(tmpdir(), "plinth-crash-"));
	try {
		await body(directory);
	} finally {
		await rm(directory, { recursive: true });
	}
}
