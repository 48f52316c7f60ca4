/** Measurements of commits that a storage has written together: in one transaction of SQLite, or of etcd. */
export interface CommitBatch {
	/** The number of commits. */
	readonly commits: number;
	/** The longest wait of a commit before the batch began, in milliseconds. */
	readonly longestWaitMs: number;
	/** The time until they were durable, in milliseconds. */
	readonly writeMs: number;
}
