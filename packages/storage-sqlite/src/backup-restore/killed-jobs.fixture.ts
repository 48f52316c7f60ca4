import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { allArtists, artist, textOf } from "@plinth/storage/testing";
import { expect } from "vitest";
import type { TestDirectory } from "../directory.fixture.ts";
import { createSqliteBackend } from "../sqlite-backend.ts";
import { restoreFile } from "./backup-restore.ts";

/** The job of a process that will be killed. */
export type Job = "backup" | "backup-open" | "restore" | "restore-open";

/** When it is killed. */
export type Kill =
	/** This long after it has begun. */
	| { readonly afterMs: number }
	/** On entering the n-th call of a system call; needs strace. */
	| { readonly call: string; readonly nth: number };

const names = Array.from({ length: 400 }, (_, index) => `a${index}`);

/**
 * Creates a storage as left by a killed process, with the last writes only in the log, and a backup of an
 * earlier state.
 */
export async function makeOriginal(directory: TestDirectory): Promise<void> {
	const path = directory.file("storage.db");
	const backend = await createSqliteBackend({ path });
	const write = async (text: string) => {
		const { resources } = await backend.list(allArtists);
		const versions = new Map(resources.map((each) => [each.id?.name, each.version]));
		await Promise.all(
			names.map((name) =>
				backend.commit([
					{ op: "put", resource: artist(name, text), expectedVersion: versions.get(name) ?? "" },
				]),
			),
		);
	};
	await write("past");
	await backend.backup({ to: directory.file("backup.db") });
	await write("present");
	const original = directory.file("original");
	await mkdir(original);
	for (const name of ["storage.db", "storage.db-wal", "backup.db"]) {
		await cp(directory.file(name), join(original, name));
	}
	await backend.close();
}

/**
 * Runs a job on a copy of the original, kills it, and checks that nothing is lost: the storage is completely
 * the old one or the new one; a backup is complete or missing.
 *
 * @returns Whether the job was killed before it was done.
 */
export async function killJob(directory: TestDirectory, job: Job, kill: Kill): Promise<boolean> {
	const copy = directory.file("copy");
	await cp(directory.file("original"), copy, { recursive: true });
	const path = join(copy, "storage.db");
	const isBackup = job.startsWith("backup");
	const other = join(copy, isBackup ? "new-backup.db" : "backup.db");
	const done = await run([job, path, other], kill);
	if (isBackup) {
		const found = (await readdir(copy)).includes("new-backup.db");
		expect(found || !done).toBe(true);
		if (found) {
			const restored = join(copy, "restored.db");
			await restoreFile({ path: restored, from: other });
			expect(await textsOf(restored)).toEqual(new Set(["present"]));
		}
		expect(await textsOf(path)).toEqual(new Set(["present"]));
	} else {
		await expectOldOrNew(copy, done);
	}
	await rm(copy, { recursive: true });
	return !done;
}

async function expectOldOrNew(copy: string, done: boolean): Promise<void> {
	const path = join(copy, "storage.db");
	const backend = await createSqliteBackend({ path });
	const { resources, version } = await backend.list(allArtists);
	const { restores } = backend.identity;
	await backend.close();
	expect(resources).toHaveLength(names.length);
	const texts = new Set(resources.map(textOf));
	expect(texts).toEqual(new Set([restores === 0 ? "present" : "past"]));
	expect(restores === 1 || !done).toBe(true);
	const replaced = (await readdir(copy)).filter((name) => /replaced-\w+$/.test(name));
	if (restores === 1) {
		expect(new Set(resources.map((each) => each.version))).toEqual(new Set([version]));
		expect(Number(version)).toBeGreaterThan(2 * names.length);
		expect(replaced).toHaveLength(1);
		expect(await textsOf(join(copy, replaced[0] ?? ""))).toEqual(new Set(["present"]));
	} else {
		expect(version).toBe(String(2 * names.length));
		expect(replaced).toEqual([]);
	}
	// Leftovers do not prevent another backup or restore.
	await restoreFile({ path, from: join(copy, "backup.db") });
	expect(await textsOf(path)).toEqual(new Set(["past"]));
}

async function textsOf(path: string): Promise<Set<string>> {
	const backend = await createSqliteBackend({ path });
	const { resources } = await backend.list(allArtists);
	await backend.close();
	expect(resources).toHaveLength(names.length);
	return new Set(resources.map(textOf));
}

/** Runs the job, and returns whether it was done. */
async function run(job: readonly string[], kill: Kill): Promise<boolean> {
	const script = new URL("./file-job.fixture.ts", import.meta.url).pathname;
	const node = [process.execPath, script, ...job];
	const trace = (call: string, nth: number) =>
		["strace", "-f", "-qq", "-o", "/dev/null", "-e", `trace=${call}`].concat(
			["-e", `inject=${call}:signal=SIGKILL:when=${nth}`],
			node,
		);
	const [command = "", ...args] = "call" in kill ? trace(kill.call, kill.nth) : node;
	const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
	let report = "";
	child.stdout.setEncoding("utf8");
	child.stdout.on("data", (text: string) => {
		if (report === "" && "afterMs" in kill) {
			setTimeout(() => child.kill("SIGKILL"), kill.afterMs);
		}
		report += text;
	});
	const [code] = await once(child, "close");
	const done = report.includes("done");
	expect(done || code !== 1, "the job fails by the kill only").toBe(true);
	return done;
}
