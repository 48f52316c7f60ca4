/**
 * Revisions that a storage gives out in a millisecond at most: many times what it can, so that the
 * clock always is ahead of its revisions.
 */
const revisionsPerMs = 1024;

/** Revisions that may be given out while a restore is prepared. */
const reserve = 2 ** 20;

/** The revisions above what a restore may raise to, so that there are always enough left. */
const highest = Number.MAX_SAFE_INTEGER - 2 ** 50;

/**
 * The revision of a storage that is restored: past any that was ever given out.
 *
 * A storage begins at 0, and at whatever this returned with each restore; from there it counts its
 * commits. As long as it counts fewer than 1,024 a millisecond, and clocks are right, no revision
 * given out until now is over 1,024 times the milliseconds since 1970: neither by the file that is
 * replaced, even if that is lost, nor by what the backup was taken of, nor by what was restored from
 * other backups before. So that is where the restored one begins; the numbers last until 2248. What
 * is known of revisions counts besides, so that a clock that is a little behind does no harm.
 *
 * @param nowMs The clock, in milliseconds since 1970.
 * @param known The revisions that are known to have been given out.
 * @returns `undefined` where the clock is so far ahead that the numbers would run out.
 */
export function raisedRevision(nowMs: number, known: readonly number[]): number | undefined {
	const raised = Math.max(
		Math.ceil(nowMs) * revisionsPerMs,
		...known.map((revision) => revision + reserve),
	);
	return raised <= highest ? raised : undefined;
}
