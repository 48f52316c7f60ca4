import { fileError } from "../file/sqlite-failure.ts";
import { startedWith } from "../thread/worker-port.ts";
import { type FileJob, runFileJob } from "./file-jobs.ts";
import type { FileJobReply } from "./file-thread.ts";

// The worker thread of one job on closed files, so that the event loop never waits for the disk. Any
// message aborts it.

const { port, input: job } = startedWith<FileJob>();
const abort = new AbortController();
port.once("message", () => abort.abort());

function send(reply: FileJobReply): void {
	port.postMessage(reply);
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
		const { path, problem, reason, file } = fileError(job.path, error);
		send({ kind: "failed", path, problem, reason, file });
	}
} finally {
	port.close();
}
