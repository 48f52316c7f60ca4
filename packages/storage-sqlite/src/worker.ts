import { parentPort, workerData } from "node:worker_threads";
import { type Ownership, takeOwnership } from "./ownership.ts";
import type { Reply, Request, WorkerInput } from "./protocol.ts";
import { StorageReader } from "./reader.ts";
import { checkHeader, createIfMissing } from "./schema.ts";
import { StorageFileError } from "./storage-file-error.ts";
import { StorageWriter } from "./writer.ts";

// The thread that owns the file: the event loop of the server never waits for the disk.

/** SQLite's code for a full disk. */
const sqliteFull = 13;

const port = parentPort;
if (port === null) {
	throw new Error("this module is the worker thread of the SQLite storage, and runs only as one");
}
const { path } = workerData as WorkerInput;

let ownership: Ownership | undefined;
let reader: StorageReader | undefined;
let writer: StorageWriter | undefined;

function send(reply: Reply, transfer: ArrayBuffer[] = []): void {
	port?.postMessage(reply, transfer);
}

function close(): void {
	reader?.close();
	writer?.close();
	ownership?.release();
	port?.close();
}

/** Answers what opening or loading throws, and ends. */
function opening(step: () => void): void {
	try {
		step();
	} catch (error) {
		const problem = error instanceof StorageFileError ? error.problem : "unreachable";
		const why = error instanceof Error ? error.message : String(error);
		send({ kind: "open-failed", problem, why });
		close();
	}
}

function open(): void {
	ownership = takeOwnership(path);
	createIfMissing(path);
	checkHeader(path);
	reader = new StorageReader(path);
	const { revision, resources } = reader.head;
	send({ kind: "opened", revision, resources });
}

function nextPage(from: StorageReader): void {
	const page = from.nextPage();
	if (page !== undefined) {
		send({ kind: "page", page }, [page.revisions.buffer, page.ends.buffer, page.bodies.buffer]);
		return;
	}
	from.close();
	reader = undefined;
	writer = new StorageWriter(path, from.head);
	send({ kind: "loaded" });
}

function write(to: StorageWriter, request: Extract<Request, { kind: "write" }>): void {
	try {
		to.write(request.revision, request.rows);
		send({ kind: "written" });
	} catch (error) {
		const why = error instanceof Error ? error.message : String(error);
		const code = error instanceof Error && "errcode" in error ? error.errcode : undefined;
		send({ kind: "write-failed", why, diskFull: code === sqliteFull });
	}
}

port.on("message", (request: Request) => {
	if (request.kind === "close") {
		close();
	} else if (request.kind === "next-page" && reader !== undefined) {
		const from = reader;
		opening(() => nextPage(from));
	} else if (request.kind === "write" && writer !== undefined) {
		write(writer, request);
	}
});
opening(open);
