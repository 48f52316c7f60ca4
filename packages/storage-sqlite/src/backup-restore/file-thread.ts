import { StorageFileError, type StorageFileProblem } from "../storage-file-error.ts";
import { startWorker } from "../thread/worker-port.ts";
import type { FileJob, FileJobResult } from "./file-jobs.ts";

/** A message from the thread of a job. */
export type FileJobReply =
	| { readonly kind: "progress"; readonly resources: number; readonly total: number }
	| { readonly kind: "done"; readonly result: FileJobResult }
	| { readonly kind: "aborted" }
	| {
			readonly kind: "failed";
			readonly path: string;
			readonly problem: StorageFileProblem;
			readonly reason: string;
			readonly file: StorageFileError["file"];
	  };

/** The progress of a backup or a restore. */
export interface CopyProgress {
	/** The number of copied resources. */
	readonly resources: number;
	/** The total number of resources; commits may still change it. */
	readonly total: number;
}

/** Common options of backups and restores. */
export interface CopyOptions {
	/** Aborts the copy and removes the files that it created; it rejects with the signal's reason. */
	readonly signal?: AbortSignal;
	/** Called periodically with the progress. */
	readonly progress?: (progress: CopyProgress) => void;
}

// `tsc` does not rewrite this: in the workspace the worker is TypeScript, in the package JavaScript.
const workerFile = new URL(
	import.meta.url.endsWith(".ts") ? "./file-worker.ts" : "./file-worker.js",
	import.meta.url,
);

/**
 * Runs a job on its own thread, which has ended when the promise settles.
 *
 * @throws StorageFileError; the signal's reason.
 */
export async function inFileThread(job: FileJob, options: CopyOptions): Promise<FileJobResult> {
	const { signal, progress } = options;
	signal?.throwIfAborted();
	let reply: FileJobReply | undefined;
	let failure: unknown;
	const receive = (message: FileJobReply) => {
		if (message.kind === "progress") {
			try {
				progress?.({ resources: message.resources, total: message.total });
			} catch (error) {
				failure ??= error;
				onAbort();
			}
		} else {
			reply = message;
		}
	};
	const { worker, post, ended } = startWorker(workerFile, "plinth-storage-file", job, receive);
	const onAbort = () => post("abort");
	signal?.addEventListener("abort", onAbort, { once: true });
	worker.on("error", (error) => {
		failure ??= error;
	});
	await ended;
	signal?.removeEventListener("abort", onAbort);
	switch (reply?.kind) {
		case "done":
			return reply.result;
		case "failed":
			throw new StorageFileError(reply.path, reply.problem, reply.reason, { file: reply.file });
		default:
			if (failure === undefined) {
				signal?.throwIfAborted();
			}
			throw failure ?? new Error(`the thread for ${job.path} has ended without a result`);
	}
}
