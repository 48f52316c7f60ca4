import { parentPort, workerData } from "node:worker_threads";
import { fileError } from "../file/sqlite-failure.ts";
import { type FileJob, runFileJob } from "./file-jobs.ts";
import type { FileJobReply } from "./file-thread.ts";

// The worker thread of one job on closed files, so that the event loop never waits for the disk. Any
// message aborts it.

const port = parentPort;
if (port === null) {
	throw new Error("this module is a worker thread of the SQLite storage, and runs only as one");
}
const job = workerData as FileJob;
const abort = new AbortController();
port.once("message", () => abort.abort());

function send(reply: FileJobReply): void {
	port?.postMessage(reply);
}

try {
	const result = await runFileJob(job, {
		signal: abort.signal,
		progress: (resources, total) => send({ kind: "progress", resources, total }),
	});
	send({ kind: "done", result });
} catch (error) {
	if (abort.signal.aborted && error === abort.signal.reason) {
		send({ kind: "aborted" });
	} else {
		const { path, problem, reason } = fileError(job.path, error);
		send({ kind: "failed", path, problem, reason });
	}
} finally {
	port.close();
}
