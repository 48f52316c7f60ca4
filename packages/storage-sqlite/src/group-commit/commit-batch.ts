/** Commits that were written together, for those who measure. */
export interface CommitBatch {
	/** How many. */
	readonly commits: number;
	/** How long the one that waited longest did so before the batch began, in milliseconds. */
	readonly longestWaitMs: number;
	/** How long it took until they were on disk, in milliseconds. */
	readonly writeMs: number;
}
