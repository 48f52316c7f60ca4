import { Worker } from "node:worker_threads";
import type { Page } from "./page.ts";
import type { Reply, Request, WorkerInput } from "./protocol.ts";

import { StorageFileError } from "./storage-file-error.ts";
import type { RowWrite } from "./writer.ts";

// `tsc` does not rewrite this: in the workspace the worker is TypeScript, in the package JavaScript.
const workerFile = new URL(
	import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js",
	import.meta.url,
);

/** A write did not happen, or is not known to have happened. */
export class WriteFailure extends Error {
	override readonly name = "WriteFailure";
	/** Whether it certainly did not, and another one may. */
	readonly diskFull: boolean;

	constructor(why: string, diskFull: boolean) {
		super(why);
		this.diskFull = diskFull;
	}
}

/** The worker thread, as its one user sees it: a request at a time, each answered once. */
export class StorageThread {
	readonly #path: string;
	readonly #worker: Worker;
	readonly #ended: Promise<void>;
	#answer: { resolve(reply: Reply): void; reject(error: Error): void } | undefined;
	#failure: Error | undefined;

	constructor(path: string) {
		this.#path = path;
		const workerData: WorkerInput = { path };
		this.#worker = new Worker(workerFile, { workerData, name: "plinth-storage" });
		this.#worker.on("message", (reply: Reply) => {
			const answer = this.#answer;
			this.#answer = undefined;
			answer?.resolve(reply);
		});
		this.#worker.on("error", (error) =>
			this.#fail(error instanceof Error ? error : new Error(String(error))),
		);
		this.#ended = new Promise((resolve) => {
			this.#worker.once("exit", (code) => {
				this.#fail(new Error(`the thread of storage ${path} has ended with code ${code}`));
				resolve();
			});
		});
	}

	/**
	 * Waits until the file is open for reading.
	 *
	 * @throws StorageFileError
	 */
	async opened(): Promise<{ readonly revision: number; readonly resources: number }> {
		const reply = this.#opening(await this.#reply());
		if (reply.kind !== "opened") {
			throw unexpected(reply);
		}
		return reply;
	}

	/**
	 * The next rows, or `undefined` where all were read and the file is open for writing.
	 *
	 * @throws StorageFileError
	 */
	async nextPage(): Promise<Page | undefined> {
		const reply = this.#opening(await this.#request({ kind: "next-page" }));
		switch (reply.kind) {
			case "page":
				return reply.page;
			case "loaded":
				return undefined;
			default:
				throw unexpected(reply);
		}
	}

	/**
	 * Writes rows in one transaction. When it has resolved, they are on disk.
	 *
	 * @throws WriteFailure
	 */
	async write(revision: number, rows: readonly RowWrite[]): Promise<void> {
		const reply = await this.#request({ kind: "write", revision, rows });
		if (reply.kind === "write-failed") {
			throw new WriteFailure(reply.why, reply.diskFull);
		}
		if (reply.kind !== "written") {
			throw unexpected(reply);
		}
	}

	/** Closes the file and ends the thread. */
	async close(): Promise<void> {
		const request: Request = { kind: "close" };
		this.#worker.postMessage(request);
		await this.#ended;
	}

	#request(request: Request): Promise<Reply> {
		const reply = this.#reply();
		this.#worker.postMessage(request);
		return reply;
	}

	#reply(): Promise<Reply> {
		return new Promise((resolve, reject) => {
			if (this.#failure !== undefined) {
				reject(this.#failure);
				return;
			}
			this.#answer = { resolve, reject };
		});
	}

	#opening(reply: Reply): Reply {
		if (reply.kind === "open-failed") {
			throw new StorageFileError(this.#path, reply.problem, reply.why);
		}
		return reply;
	}

	#fail(error: Error): void {
		this.#failure ??= error;
		this.#answer?.reject(this.#failure);
		this.#answer = undefined;
	}
}

function unexpected(reply: Reply): Error {
	return new Error(`unexpected reply of the storage thread: ${reply.kind}`);
}
