/**
 * The most revisions that a storage issues per millisecond: many times what it can, so that the clock is
 * always ahead of its revisions.
 */
const revisionsPerMs = 1024;

/** Revisions that may be issued while a restore is prepared. */
const reserve = 2 ** 20;

/** The highest revision that a restore may raise to, so that enough are always left. */
const highest = Number.MAX_SAFE_INTEGER - 2 ** 50;

/**
 * The first revision of a restored storage: greater than any that was ever issued.
 *
 * A storage starts at 0, and after each restore at the result of this function; from there it counts its
 * commits. As long as it counts fewer than 1,024 a millisecond, and clocks are right, no revision issued
 * so far exceeds 1,024 times the milliseconds since 1970: not by the replaced file, even if that is lost,
 * not by the storage that the backup was taken of, and not by earlier restores from other backups. So the
 * restored storage starts there; the numbers last until 2248. Known revisions are taken into account too,
 * so that a clock that is slightly behind does no harm.
 *
 * @param nowMs The clock, in milliseconds since 1970.
 * @param known Revisions that are known to have been issued.
 * @returns `undefined` if the clock is so far ahead that revisions would run out.
 */
export function firstRevisionAfterRestore(
	nowMs: number,
	known: readonly number[],
): number | undefined {
	const raised = Math.max(
		Math.ceil(nowMs) * revisionsPerMs,
		...known.map((revision) => revision + reserve),
	);
	return raised <= highest ? raised : undefined;
}
