/**
 * Compares versions of one storage, which are decimal numbers of any length without leading zeros: negative if `a` is
 * older, 0 if they are equal. The empty version is older than any other.
 */
export function compareVersions(a: string, b: string): number {
	if (a.length !== b.length) {
		return a.length - b.length;
	}
	return a < b ? -1 : a > b ? 1 : 0;
}
