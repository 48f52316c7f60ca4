import { BackupRunner } from "../backup-restore/backup-runner.ts";
import { completeRestore, decideRestore, removeLeftovers } from "../backup-restore/restore-swap.ts";
import { createIfMissing } from "../file/create-storage.ts";
import { readEvents } from "../file/event-table.ts";
import { migrate, schemaVersion } from "../file/migrations.ts";
import { fileError, isDiskFull, reasonOf } from "../file/sqlite-failure.ts";
import { checkWhole, refuseBackup, StorageReader } from "../file/storage-reader.ts";
import { EventTableFailure, openForWriting, StorageWriter } from "../file/storage-writer.ts";
import { type Ownership, takeOwnership } from "../file-access/ownership.ts";
import { tightenFiles } from "../file-access/private-files.ts";
import type { Page } from "../loading/page.ts";
import { GiveBackSpace } from "./give-back-space.ts";
import type { Reply, Request, WorkerInput } from "./thread-protocol.ts";
import { startedWith } from "./worker-port.ts";

// The worker thread that owns the file, so that the event loop of the server never waits for the disk.

const {
	port,
	input: { path, mode, fresh },
} = startedWith<WorkerInput>();

let ownership: Ownership | undefined;
let reader: StorageReader | undefined;
let writer: StorageWriter | undefined;
const backups = new BackupRunner(path, send);
const giveBack = new GiveBackSpace({
	space: () => writer?.space,
	schedule(delayMs, run) {
		const timer = setTimeout(run, delayMs);
		return () => clearTimeout(timer);
	},
	now: () => performance.now(),
	stepped: () => writer?.checkpointIfLong(),
	failed: diskFailed,
});
/** Why nothing more must be written: the content of the disk is unknown. */
let failure: unknown;

function send(reply: Reply, transfer: ArrayBuffer[] = []): void {
	port.postMessage(reply, transfer);
}

/** The disk has failed after a write was acknowledged, or beside writes: reports it at once, and refuses writes from now on. */
function diskFailed(error: unknown): void {
	failure = error;
	giveBack.stop();
	send({ kind: "disk-failed", reason: reasonOf(error) });
}

async function close(): Promise<void> {
	giveBack.stop();
	await backups.close();
	reader?.close();
	writer?.close();
	ownership?.release();
	port.close();
}

/** Reports an error of opening or loading, and ends the thread. */
function opening(step: () => void): void {
	try {
		step();
	} catch (error) {
		const { path: at, problem, reason } = fileError(path, error);
		send({ kind: "open-failed", path: at, problem, reason });
		void close();
	}
}

function open(): void {
	let readableByOthers: readonly string[] = [];
	if (mode === "own") {
		ownership = takeOwnership(path);
		completeRestore(path);
		removeLeftovers(path);
		createIfMissing(path, fresh);
		bringUpToDate();
		readableByOthers = tightenFiles(path);
	}
	reader = new StorageReader(path);
	const { head, identity } = reader;
	send({
		...{ kind: "opened", revision: head.revision, resources: head.resources },
		...{ identity, readableByOthers },
	});
}

/** Migrates an older file, after checking all of it. */
function bringUpToDate(): void {
	const { version, identity } = inspect();
	refuseBackup(path, identity);
	if (version < schemaVersion) {
		checkWhole(path);
		const database = openForWriting(path);
		try {
			migrate(database, { fresh });
		} finally {
			database.close();
		}
	}
}

/** The version, head and identity of the file. */
function inspect(): StorageReader {
	const inspected = new StorageReader(path);
	inspected.close();
	return inspected;
}

/** The pages of one message: the messages of single ones would cost as much as what they carry. */
const pagesPerMessage = 8;

function nextPages(from: StorageReader): void {
	const pages: Page[] = [];
	while (pages.length < pagesPerMessage) {
		const page = from.nextPage();
		if (page === undefined) {
			break;
		}
		pages.push(page);
	}
	if (pages.length > 0) {
		const buffers = pages.flatMap(({ revisions, ends, bodies }) => [
			revisions.buffer,
			ends.buffer,
			bodies.buffer,
		]);
		send({ kind: "pages", pages }, buffers);
		return;
	}
	from.close();
	reader = undefined;
	if (mode === "own") {
		writer = new StorageWriter(path, from.head);
		giveBack.opened();
	}
	send({ kind: "loaded" });
}

function write({ revision, rows }: Extract<Request, { kind: "write" }>): void {
	written(
		(to) => to.write(revision, rows),
		() => backups.follow(rows),
	);
}

/** Writes, and reports the outcome. */
function written(action: (to: StorageWriter) => void, afterwards: () => void = () => {}): void {
	try {
		const to = openWriter();
		if (failure !== undefined) {
			throw failure;
		}
		action(to);
	} catch (error) {
		send({
			...{ kind: "write-failed", reason: reasonOf(error), diskFull: isDiskFull(error) },
			eventTable: error instanceof EventTableFailure,
		});
		return;
	}
	send({ kind: "written" });
	afterwards();
	try {
		writer?.checkpointIfLong();
	} catch (error) {
		diskFailed(error);
		return;
	}
	giveBack.written();
}

function readEventPage({ nowMs, after }: Extract<Request, { kind: "read-events" }>): void {
	try {
		send({ kind: "events", page: readEvents(openWriter().database, nowMs, after) });
	} catch (error) {
		send({ kind: "read-failed", reason: reasonOf(error) });
	}
}

function openWriter(): StorageWriter {
	if (writer === undefined) {
		throw new Error("the file is not open for writing");
	}
	return writer;
}

/** Replaces this file by the built one. */
function replace(old: StorageWriter): void {
	backups.abort();
	let undone = true;
	try {
		writer = undefined;
		old.close();
		try {
			decideRestore(path);
		} catch (error) {
			writer = new StorageWriter(path, old.head);
			throw error;
		}
		undone = false;
		const replaced = completeRestore(path);
		writer = new StorageWriter(path, inspect().head);
		send({ kind: "replaced", replaced });
	} catch (error) {
		const { reason } = fileError(path, error);
		send({ kind: "replace-failed", reason, undone: undone && writer !== undefined });
	}
}

port.on("message", (request: Request) => {
	switch (request.kind) {
		case "next-pages":
			if (reader !== undefined) {
				const from = reader;
				opening(() => nextPages(from));
			}
			break;
		case "write":
			write(request);
			break;
		case "write-events":
			written((to) => to.writeEvents(request));
			break;
		case "read-events":
			readEventPage(request);
			break;
		case "replace":
			if (writer !== undefined) {
				replace(writer);
			}
			break;
		case "backup":
			backups.run(() => writer, request);
			break;
		case "abort-backup":
			backups.abort();
			break;
		case "close":
			void close();
			break;
	}
});
opening(open);
