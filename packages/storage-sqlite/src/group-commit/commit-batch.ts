/** Measurements of commits that were written together. */
export interface CommitBatch {
	/** The number of commits. */
	readonly commits: number;
	/** The longest wait of a commit before the batch began, in milliseconds. */
	readonly longestWaitMs: number;
	/** The time to write them to disk, in milliseconds. */
	readonly writeMs: number;
}
