import { growthShare, type StorageLimits } from "../limits.ts";
import { EventLog, type LogAccount } from "../watch/event-log.ts";
import { type FamilyHolds, RetentionLedger } from "./retention-ledger.ts";

const mebibyte = 1024 * 1024;

/** The minimum that all logs together may retain, however small the budget: several of the largest commits. */
const leastLogBytes = 16 * mebibyte;
/** Logs over their limit are cut to this share of it, so that the next event does not exceed it again. */
const logsCutTo = 7 / 8;

/**
 * The memory that a state store retains beyond the state: old versions of resources, in event logs for
 * watches and in held snapshots. Each is counted once: in the log while the log has it, then in the
 * ledger of snapshots if one of them has seen it.
 *
 * Logs also retain what consumers derive from their events, such as encodings.
 *
 * Invariant, after `enforce`: logs retain at most half of `retainedBudget`, or 16 MiB if that is more, and
 * snapshots at most the rest, which is at least half. Readers lose their snapshots and positions; writers
 * never fail because of them.
 */
export class RetainedMemory {
	readonly ledger = new RetentionLedger();
	readonly #limits: StorageLimits;
	readonly #logs = new Set<EventLog>();
	#logBytes = 0;
	/** What logs may retain, as of the latest call of `enforce`. */
	#mostLogBytes = leastLogBytes;

	constructor(limits: StorageLimits) {
		this.#limits = limits;
	}

	/** Bytes retained by event logs and held snapshots beyond the state. */
	get bytes(): number {
		return this.#logBytes + this.ledger.bytes;
	}

	/**
	 * Creates the log of a family, as of a revision and the time at which it was loaded. It may replace a former log that is
	 * still unused.
	 */
	openLog(
		{ revision, atMs }: { readonly revision: number; readonly atMs: number },
		holds: FamilyHolds,
		former?: EventLog,
	): EventLog {
		const hasRoom = () => this.#logBytes <= this.#mostLogBytes;
		if (former !== undefined) {
			this.#logs.delete(former);
		}
		const account: LogAccount = {
			changed: (bytes) => {
				this.#logBytes += bytes;
			},
			get hasRoom() {
				return hasRoom();
			},
			dropped: ({ replaced, revision: diedAt, bytes }) => {
				if (replaced !== undefined) {
					holds.resourceDied(revisionOf(replaced.version), diedAt, bytes);
				}
			},
		};
		const log = new EventLog(revision, this.#limits, account, atMs);
		this.#logs.add(log);
		return log;
	}

	/**
	 * Brings logs and snapshots back within the budget. Call it after each change; it costs nothing while
	 * they are within it.
	 */
	enforce(stateBytes: number): void {
		const budget = retainedBudget(this.#limits, stateBytes);
		const most = Math.max(leastLogBytes, budget / 2);
		this.#mostLogBytes = most;
		if (this.#logBytes > most) {
			this.#shrinkLogs(most * logsCutTo);
		}
		const left = Math.max(budget - this.#logBytes, budget / 2);
		if (this.ledger.bytes > left) {
			// Watches that have lost their position hold snapshots for nothing: these end first.
			for (const log of this.#logs) {
				if (log.needsSweep) {
					log.sweep();
				}
			}
			this.ledger.shrink(left);
		}
	}

	/** Cuts the largest logs, down to one common size. */
	#shrinkLogs(mostBytes: number): void {
		const logs = [...this.#logs].sort((a, b) => a.bytes - b.bytes);
		let bytes = mostBytes;
		for (const [index, log] of logs.entries()) {
			const share = bytes / (logs.length - index);
			if (log.bytes > share) {
				log.shrink(share);
			}
			bytes -= log.bytes;
		}
	}
}

/**
 * How many bytes logs and snapshots may retain with a state of that size. With a memory limit: at most a
 * quarter of it, and at most what the state leaves of the 80 % up to which it may grow; but always at
 * least a tenth, which is within the reserve for deletions.
 */
export function retainedBudget(limits: StorageLimits, stateBytes: number): number {
	const { memoryBytes, retainedBytes } = limits;
	if (memoryBytes === Number.POSITIVE_INFINITY) {
		return retainedBytes;
	}
	const free = Math.max(memoryBytes / 10, memoryBytes * growthShare - stateBytes);
	return Math.min(retainedBytes, memoryBytes / 4, free);
}

/** The revision of a version; 0 if there is no version. */
function revisionOf(version: string): number {
	const revision = Number(version);
	return Number.isNaN(revision) ? 0 : revision;
}
