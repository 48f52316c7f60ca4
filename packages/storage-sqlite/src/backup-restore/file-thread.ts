import { Worker } from "node:worker_threads";
import { StorageFileError, type StorageFileProblem } from "../storage-file-error.ts";
import type { FileJob, FileJobResult } from "./file-jobs.ts";

/** What the thread of a job says. */
export type FileJobReply =
	| { readonly kind: "progress"; readonly resources: number; readonly of: number }
	| { readonly kind: "done"; readonly result: FileJobResult }
	| { readonly kind: "aborted" }
	| {
			readonly kind: "failed";
			readonly path: string;
			readonly problem: StorageFileProblem;
			readonly why: string;
	  };

/** How far a backup or a restore has come. */
export interface CopyProgress {
	/** The resources that are copied. */
	readonly resources: number;
	/** How many there are, as far as that is known: commits go on. */
	readonly of: number;
}

/** What long jobs with files have in common. */
export interface CopyOptions {
	/** Stops it, and leaves nothing behind; it rejects with the signal's reason. */
	readonly signal?: AbortSignal;
	/** Called now and then with how far it has come. */
	readonly progress?: (progress: CopyProgress) => void;
}

// `tsc` does not rewrite this: in the workspace the worker is TypeScript, in the package JavaScript.
const workerFile = new URL(
	import.meta.url.endsWith(".ts") ? "./file-worker.ts" : "./file-worker.js",
	import.meta.url,
);

/**
 * Does a job on its own thread, which has ended when this has settled.
 *
 * @throws StorageFileError; the signal's reason.
 */
export async function inFileThread(job: FileJob, options: CopyOptions): Promise<FileJobResult> {
	const { signal, progress } = options;
	signal?.throwIfAborted();
	const worker = new Worker(workerFile, { workerData: job, name: "plinth-storage-file" });
	const onAbort = () => worker.postMessage("abort");
	signal?.addEventListener("abort", onAbort, { once: true });
	let reply: FileJobReply | undefined;
	let failure: unknown;
	worker.on("message", (message: FileJobReply) => {
		if (message.kind === "progress") {
			try {
				progress?.({ resources: message.resources, of: message.of });
			} catch (error) {
				failure ??= error;
				onAbort();
			}
		} else {
			reply = message;
		}
	});
	worker.on("error", (error) => {
		failure ??= error;
	});
	await new Promise<void>((resolve) => {
		worker.once("exit", () => resolve());
	});
	signal?.removeEventListener("abort", onAbort);
	switch (reply?.kind) {
		case "done":
			return reply.result;
		case "failed":
			throw new StorageFileError(reply.path, reply.problem, reply.why);
		default:
			if (failure === undefined) {
				signal?.throwIfAborted();
			}
			throw failure ?? new Error(`the thread for ${job.path} has ended without an answer`);
	}
}
