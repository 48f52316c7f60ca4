import { copyFile, stat } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { deleteMost, keptArtists, openAgain, writeMany } from "./large-storage.fixture.ts";
import { StorageReader } from "./storage-reader.ts";

let directory: TestDirectory;
let path: string;

beforeEach(async () => {
	directory = await testDirectory();
	path = directory.file("storage.db");
});

afterEach(() => directory[Symbol.asyncDispose]());

const mebibyte = 2 ** 20;

/** The number of stored resources, after all checks of the file. */
function checkedRows(): number {
	const reader = new StorageReader(path);
	try {
		return [...reader.rows()].length;
	} finally {
		reader.close();
	}
}

it("gives back what exceeds a tenth of the file, in steps of a bounded number of pages", async () => {
	writeMany(path);
	const before = (await stat(path)).size;
	const writer = openAgain(path);
	expect(writer.space.excess).toBe(0);
	deleteMost(writer);
	const excess = writer.space.excess;
	expect(excess).toBeGreaterThan(800);
	let pages = 0;
	let steps = 0;
	for (let gone = writer.space.giveBack(64); gone > 0; gone = writer.space.giveBack(64)) {
		expect(gone).toBeLessThanOrEqual(64);
		pages += gone;
		steps += 1;
	}
	// Pages become more as a tenth of the file becomes less.
	expect(pages).toBeGreaterThanOrEqual(excess);
	expect(steps).toBe(Math.ceil(pages / 64));
	writer.space.checkpoint();
	const after = (await stat(path)).size;
	// Pages with SQLite's own records of pages go with them.
	expect(after).toBeLessThanOrEqual(before - pages * 4096);
	expect(after).toBeLessThan(2 * mebibyte);
	writer.close();
	expect(checkedRows()).toBe(keptArtists.length);
});

it("has a tail until a checkpoint, also if the process is killed before", async () => {
	writeMany(path);
	const killed = openAgain(path);
	deleteMost(killed);
	killed.space.checkpoint();
	expect(killed.space.hasTail).toBe(false);
	killed.space.giveBack(10_000);
	expect(killed.space.hasTail).toBe(true);
	const left = directory.file("left.db");
	for (const suffix of ["", "-wal"]) {
		await copyFile(path + suffix, left + suffix);
	}
	killed.close();
	const writer = openAgain(left);
	expect([writer.space.hasTail, writer.space.giveBack(10_000)]).toEqual([true, 0]);
	writer.space.checkpoint();
	expect(writer.space.hasTail).toBe(false);
	expect((await stat(left)).size).toBeLessThan(2 * mebibyte);
	writer.close();
});

it("leaves the pages of a file that was created without it, until SQLite has rewritten the file", async () => {
	writeMany(path);
	const rewritten = (mode: string) => {
		const database = new DatabaseSync(path);
		database.exec(`PRAGMA auto_vacuum = ${mode}`);
		database.exec("VACUUM");
		database.close();
	};
	rewritten("NONE");
	const writer = openAgain(path);
	deleteMost(writer);
	expect([writer.space.excess, writer.space.giveBack(64)]).toEqual([0, 0]);
	writer.close();
	expect((await stat(path)).size).toBeGreaterThan(4 * mebibyte);
	rewritten("INCREMENTAL");
	expect((await stat(path)).size).toBeLessThan(mebibyte);
	expect(checkedRows()).toBe(keptArtists.length);
	const again = openAgain(path);
	again.write(3, []);
	expect(again.space.excess).toBe(0);
	again.close();
});
