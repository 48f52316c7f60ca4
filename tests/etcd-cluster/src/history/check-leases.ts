import type { LeaseChange, StorageRecord } from "./storage-record.ts";

/** One hold of the lease, from the revision that began it to the one that ended it. */
interface Hold {
	readonly from: number;
	readonly process: number;
	to: number;
}

/**
 * What is wrong with who held a lease when, by etcd's own record: a hold that began before the last one
 * had ended, and a write of a singleton outside of the hold that its run began in.
 */
export function leaseProblems(record: StorageRecord, lease: string): readonly string[] {
	const problems: string[] = [];
	const holds = holdsOf(
		record.leases.filter((change) => change.lease === lease),
		problems,
	);
	const runs = new Map<string, Hold>();
	for (const { revision, process, run } of record.effects) {
		const hold = holds.find(({ from, to }) => from < revision && revision < to);
		if (hold === undefined || hold.process !== process) {
			problems.push(
				`process ${process} wrote at ${revision}, when ${hold === undefined ? "nobody" : `process ${hold.process}`} held ${lease}`,
			);
		} else if ((runs.get(run) ?? hold) !== hold) {
			problems.push(
				`run ${run} of process ${process} wrote at ${revision}, in another hold of ${lease}`,
			);
		} else {
			runs.set(run, hold);
		}
	}
	return problems;
}

function holdsOf(changes: readonly LeaseChange[], problems: string[]): readonly Hold[] {
	const holds: Hold[] = [];
	let current: Hold | undefined;
	for (const change of changes) {
		if (change.kind === "delete") {
			if (current === undefined) {
				problems.push(`${change.lease} ended at ${change.revision}, and nobody held it`);
			} else {
				current.to = change.revision;
				current = undefined;
			}
			continue;
		}
		if (current !== undefined || change.createRevision !== change.revision) {
			problems.push(
				`process ${change.process} took ${change.lease} at ${change.revision} from its holder`,
			);
		}
		current = { from: change.revision, process: change.process, to: Number.POSITIVE_INFINITY };
		holds.push(current);
	}
	return holds;
}

/** How often the lease was taken. */
export function holdCount(record: StorageRecord): number {
	return record.leases.filter(({ kind }) => kind === "put").length;
}
