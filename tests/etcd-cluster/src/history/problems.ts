import { leaseProblems } from "./check-leases.ts";
import { linearizabilityProblems } from "./check-operations.ts";
import { monotonicityProblems } from "./check-reads.ts";
import { watchProblems } from "./check-watches.ts";
import { writeProblems } from "./check-writes.ts";
import type { History } from "./history.ts";
import type { StorageRecord } from "./storage-record.ts";

/** The lease that all singleton controllers of a server run under. */
const lease = "controllers";

/** The violations of the guarantees of the storage, by guarantee. */
export interface Problems {
	readonly linearizable: readonly string[];
	readonly monotonic: readonly string[];
	readonly watches: readonly string[];
	readonly writes: readonly string[];
	readonly leases: readonly string[];
}

/** All problems of the history of clients, compared with the record of the storage. */
export function problemsOf(history: History, record: StorageRecord): Problems {
	return {
		linearizable: linearizabilityProblems(history.operations),
		monotonic: monotonicityProblems(history, record),
		watches: watchProblems(history.sessions, record),
		writes: writeProblems(history.operations, record),
		leases: leaseProblems(record, lease),
	};
}

/** No problems. */
export const noProblems: Problems = {
	linearizable: [],
	monotonic: [],
	watches: [],
	writes: [],
	leases: [],
};
