import type { EventPage, EventWrite } from "../file/event-table.ts";
import type { StoredIdentity } from "../file/identity.ts";
import type { RowWrite } from "../file/row-table.ts";
import type { Page } from "../loading/page.ts";
import { StorageFileError } from "../storage-file-error.ts";
import type {
	BackupOutcome,
	BackupReply,
	DiskFailed,
	LiveBackupOrder,
	Reply,
	Request,
	WorkerInput,
} from "./thread-protocol.ts";
import { startWorker, type WorkerWithPort } from "./worker-port.ts";

// `tsc` does not rewrite this: in the workspace the worker is TypeScript, in the package JavaScript.
const workerFile = new URL(
	import.meta.url.endsWith(".ts") ? "./storage-worker.ts" : "./storage-worker.js",
	import.meta.url,
);

/** How long an abandoned thread may take to close its file. */
const abandonAfterMs = 300;

/** A write failed, or its outcome is unknown. */
export class WriteFailure extends Error {
	override readonly name = "WriteFailure";
	/** Whether nothing was written because the disk is full, so that another write may succeed. */
	readonly diskFull: boolean;
	/** Whether nothing was written because of the table of events, so that other writes may succeed. */
	readonly eventTable: boolean;

	constructor(reason: string, diskFull: boolean, eventTable = false) {
		super(reason);
		this.diskFull = diskFull;
		this.eventTable = eventTable;
	}
}

/** The file was not replaced, or was replaced and can't be opened. */
export class ReplaceFailure extends Error {
	override readonly name = "ReplaceFailure";
	/** Whether the old file is still in place, and open. */
	readonly undone: boolean;

	constructor(reason: string, undone: boolean) {
		super(reason);
		this.undone = undone;
	}
}

/** The properties of an opened file. */
export interface Opened {
	readonly revision: number;
	readonly resources: number;
	readonly identity: StoredIdentity | undefined;
	/** Files of the storage whose permissions could not be tightened. */
	readonly readableByOthers: readonly string[];
}

type PlainReply = Exclude<Reply, BackupReply | DiskFailed>;

/**
 * The client of the worker thread: one request at a time, each with one reply, and concurrently at most one
 * backup.
 */
export class StorageThread {
	readonly #path: string;
	readonly #thread: WorkerWithPort;
	readonly #ended: Promise<void>;
	#pending: { resolve(reply: PlainReply): void; reject(error: Error): void } | undefined;
	#backup: { take(reply: BackupReply): void; reject(error: Error): void } | undefined;
	#failure: Error | undefined;
	#closing = false;
	readonly #died = Promise.withResolvers<Error>();
	readonly #diskFailed = Promise.withResolvers<Error>();

	constructor(input: WorkerInput) {
		this.#path = input.path;
		this.#thread = startWorker(workerFile, "plinth-storage", input, (reply: Reply) =>
			this.#take(reply),
		);
		this.#thread.worker.on("error", (error) =>
			this.#fail(error instanceof Error ? error : new Error(String(error))),
		);
		this.#ended = this.#thread.ended.then((code) =>
			this.#fail(new Error(`the thread of storage ${this.#path} has ended with code ${code}`)),
		);
	}

	/** Resolves with the reason if the thread ends without being closed; otherwise never. */
	get died(): Promise<Error> {
		return this.#died.promise;
	}

	/** Resolves with the reason if the disk fails though no write does, and all later writes will; otherwise never. */
	get diskFailed(): Promise<Error> {
		return this.#diskFailed.promise;
	}

	/**
	 * Waits until the file is open for reading.
	 *
	 * @throws StorageFileError
	 */
	async opened(): Promise<Opened> {
		const reply = opening(await this.#reply());
		if (reply.kind !== "opened") {
			throw unexpected(reply);
		}
		return reply;
	}

	/**
	 * The next rows, in pages of a millisecond or two each, or `undefined` if all were read and the file is open for
	 * writing.
	 *
	 * @throws StorageFileError
	 */
	async nextPages(): Promise<readonly Page[] | undefined> {
		const reply = opening(await this.#request({ kind: "next-pages" }));
		switch (reply.kind) {
			case "pages":
				return reply.pages;
			case "loaded":
				return undefined;
			default:
				throw unexpected(reply);
		}
	}

	/**
	 * Writes rows in one transaction. When it resolves, they are on disk.
	 *
	 * @throws WriteFailure
	 */
	async write(revision: number, rows: readonly RowWrite[]): Promise<void> {
		await this.#written({ kind: "write", revision, rows });
	}

	/**
	 * Writes and removes rows of events in one transaction, and deletes expired ones.
	 *
	 * @throws WriteFailure
	 */
	async writeEvents(write: EventWrite): Promise<void> {
		await this.#written({ kind: "write-events", ...write });
	}

	/**
	 * Reads a page of the rows of events that have not expired.
	 *
	 * @param after The last key of the page before; `undefined` for the first page.
	 */
	async readEvents(nowMs: number, after: string | undefined): Promise<EventPage> {
		const reply = await this.#request({ kind: "read-events", nowMs, after });
		if (reply.kind === "read-failed") {
			throw new Error(reply.reason);
		}
		if (reply.kind !== "events") {
			throw unexpected(reply);
		}
		return reply.page;
	}

	/**
	 * Replaces the file by the one that a restore has built, and keeps the old one.
	 *
	 * @returns The path of the old file.
	 * @throws ReplaceFailure
	 */
	async replace(): Promise<string | undefined> {
		const reply = await this.#request({ kind: "replace" });
		if (reply.kind === "replace-failed") {
			throw new ReplaceFailure(reply.reason, reply.undone);
		}
		if (reply.kind !== "replaced") {
			throw unexpected(reply);
		}
		return reply.replaced;
	}

	/** Takes a backup while writes continue. Settles soon after the signal aborts. */
	async backup(
		order: LiveBackupOrder,
		signal: AbortSignal,
		progress: (resources: number, total: number) => void,
	): Promise<BackupOutcome> {
		const abort = () => this.#post({ kind: "abort-backup" });
		let failure: unknown;
		try {
			const outcome = await new Promise<BackupOutcome>((resolve, reject) => {
				if (this.#failure !== undefined) {
					reject(this.#failure);
					return;
				}
				const take = (reply: BackupReply) => {
					if (reply.kind === "backup-ended") {
						resolve(reply.outcome);
						return;
					}
					try {
						progress(reply.resources, reply.total);
					} catch (error) {
						failure ??= error;
						abort();
					}
				};
				this.#backup = { take, reject };
				signal.addEventListener("abort", abort, { once: true });
				this.#post({ kind: "backup", ...order });
			});
			if (failure !== undefined && outcome.kind !== "done") {
				throw failure;
			}
			return outcome;
		} finally {
			signal.removeEventListener("abort", abort);
			this.#backup = undefined;
		}
	}

	/** Closes the file and ends the thread. */
	async close(): Promise<void> {
		this.#closing = true;
		this.#post({ kind: "close" });
		await this.#ended;
	}

	/**
	 * Ends the thread while it is reading: asks it to close, and terminates it if it does not do so soon. The
	 * file survives that, as it survives a killed process.
	 */
	async abandon(): Promise<void> {
		const forced = setTimeout(() => void this.#thread.worker.terminate(), abandonAfterMs);
		try {
			await this.close();
		} finally {
			clearTimeout(forced);
		}
	}

	#take(reply: Reply): void {
		if (reply.kind === "disk-failed") {
			this.#diskFailed.resolve(new Error(reply.reason));
			return;
		}
		if (reply.kind === "backup-progress" || reply.kind === "backup-ended") {
			this.#backup?.take(reply);
			return;
		}
		const pending = this.#pending;
		this.#pending = undefined;
		pending?.resolve(reply);
	}

	#post(request: Request): void {
		this.#thread.post(request);
	}

	async #written(request: Request): Promise<void> {
		const reply = await this.#request(request);
		if (reply.kind === "write-failed") {
			throw new WriteFailure(reply.reason, reply.diskFull, reply.eventTable);
		}
		if (reply.kind !== "written") {
			throw unexpected(reply);
		}
	}

	#request(request: Request): Promise<PlainReply> {
		const reply = this.#reply();
		this.#post(request);
		return reply;
	}

	#reply(): Promise<PlainReply> {
		return new Promise((resolve, reject) => {
			if (this.#failure !== undefined) {
				reject(this.#failure);
				return;
			}
			this.#pending = { resolve, reject };
		});
	}

	#fail(error: Error): void {
		this.#failure ??= error;
		if (!this.#closing) {
			this.#died.resolve(this.#failure);
		}
		this.#pending?.reject(this.#failure);
		this.#pending = undefined;
		this.#backup?.reject(this.#failure);
		this.#backup = undefined;
	}
}

function opening(reply: PlainReply): PlainReply {
	if (reply.kind === "open-failed") {
		throw new StorageFileError(reply.path, reply.problem, reply.reason);
	}
	return reply;
}

function unexpected(reply: PlainReply): Error {
	return new Error(`unexpected reply of the storage thread: ${reply.kind}`);
}
