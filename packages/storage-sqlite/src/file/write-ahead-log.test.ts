import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import { testDirectory } from "../directory.fixture.ts";
import { WriteAheadLog } from "./write-ahead-log.ts";

it("knows how many frames the log has, also once it begins again", async () => {
	const directory = await testDirectory();
	onTestFinished(() => directory[Symbol.asyncDispose]());
	const path = directory.file("test.db");
	const database = new DatabaseSync(path);
	database.exec("PRAGMA locking_mode = EXCLUSIVE");
	database.exec("PRAGMA journal_mode = WAL");
	database.exec("PRAGMA wal_autocheckpoint = 0");
	database.exec("CREATE TABLE rows (body BLOB)");
	const insert = database.prepare("INSERT INTO rows VALUES (zeroblob(3000))");
	const log = new WriteAheadLog(path, 4096);
	const framesInFile = () => (statSync(`${path}-wal`).size - 32) / (4096 + 24);
	const checkpoint = () => database.prepare("PRAGMA wal_checkpoint(PASSIVE)").get();
	for (let count = 0; count < 20; count++) {
		insert.run();
		const frames = framesInFile();
		expect([log.hasFrames(frames), log.hasFrames(frames + 1)]).toEqual([true, false]);
	}
	const long = framesInFile();
	expect(checkpoint()).toMatchObject({ log: long, checkpointed: long });
	for (let count = 0; count < 3; count++) {
		insert.run();
	}
	expect(framesInFile()).toBe(long);
	// A checkpoint says how many frames the log has.
	const frames = Number(checkpoint()?.log);
	expect(frames).toBeLessThan(long);
	expect([log.hasFrames(frames), log.hasFrames(frames + 1)]).toEqual([true, false]);
	log.close();
	database.close();
});
