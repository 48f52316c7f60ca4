/**
 * Orders versions, which are decimal numbers without leading zeros, of any length: negative where
 * `a` is the older, 0 where they are the same. The empty version is older than any.
 */
export function compareVersions(a: string, b: string): number {
	if (a.length !== b.length) {
		return a.length - b.length;
	}
	return a < b ? -1 : a > b ? 1 : 0;
}
