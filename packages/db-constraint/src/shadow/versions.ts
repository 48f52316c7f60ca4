/** Compares two versions of one storage: decimal numbers without leading zeros. Empty is the oldest. */
export function compareVersions(a: string, b: string): number {
	if (a.length !== b.length) {
		return a.length - b.length;
	}
	return a < b ? -1 : a > b ? 1 : 0;
}
