import { setImmediate } from "node:timers/promises";
import { readIdentity } from "../file/identity.ts";
import type { RowWrite } from "../file/row-table.ts";
import { fileError } from "../file/sqlite-failure.ts";
import type { StorageWriter } from "../file/storage-writer.ts";
import type { BackupOutcome, BackupReply, LiveBackupOrder } from "../thread/thread-protocol.ts";
import { backupIdentity, partialPath } from "./backup-order.ts";
import { LiveBackup } from "./live-backup.ts";
import { publish, refuseExisting } from "./new-storage-file.ts";

/** Runs backups on the writing thread, one at a time, a slice between commits. */
export class BackupRunner {
	readonly #path: string;
	readonly #send: (reply: BackupReply) => void;
	/** The current backup, while it follows commits. */
	#following: LiveBackup | undefined;
	#aborted = false;
	#running: Promise<void> = Promise.resolve();

	/** @param path The path of the storage. */
	constructor(path: string, send: (reply: BackupReply) => void) {
		this.#path = path;
		this.#send = send;
	}

	/** Runs a backup and reports its progress, after an aborted one has ended. */
	run(writer: () => StorageWriter | undefined, order: LiveBackupOrder): void {
		this.#running = this.#running.then(() => this.#run(writer(), order));
	}

	/** Passes committed rows to the current backup. */
	follow(rows: readonly RowWrite[]): void {
		this.#following?.follow(rows);
	}

	/** Aborts the current backup, which ends soon after. */
	abort(): void {
		this.#aborted = true;
		this.#following = undefined;
	}

	/** Aborts the current backup and waits for its end, before the storage is closed. */
	async close(): Promise<void> {
		this.abort();
		await this.#running;
	}

	/** Never rejects. */
	async #run(writer: StorageWriter | undefined, order: LiveBackupOrder): Promise<void> {
		this.#aborted = false;
		let outcome: BackupOutcome;
		try {
			outcome = await this.#outcome(writer, order);
		} catch (error) {
			const { path, problem, reason } = fileError(order.to, error);
			outcome = { kind: "failed", path, problem, reason };
		}
		this.#send({ kind: "backup-ended", outcome });
	}

	async #outcome(
		writer: StorageWriter | undefined,
		order: LiveBackupOrder,
	): Promise<BackupOutcome> {
		refuseExisting(order.to);
		if (writer === undefined) {
			throw new Error("the storage is not open");
		}
		const identity = backupIdentity(readIdentity(writer.database), order);
		const partial = partialPath(order);
		const backup = new LiveBackup(this.#path, writer, partial, identity);
		this.#following = backup;
		try {
			while (backup.step()) {
				this.#send({
					kind: "backup-progress",
					resources: backup.resources,
					total: writer.head.resources,
				});
				await setImmediate();
				if (this.#aborted) {
					return { kind: "aborted" };
				}
			}
			const { head } = writer;
			const finished = backup.finish();
			this.#following = undefined;
			await finished;
			if (this.#aborted) {
				return { kind: "aborted" };
			}
			publish(partial, order.to);
			return { kind: "done", result: { head, identity } };
		} finally {
			this.#following = undefined;
			backup.discard();
		}
	}
}
