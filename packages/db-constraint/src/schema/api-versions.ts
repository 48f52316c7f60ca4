const pattern = /^v(\d+)(?:(alpha|beta)(\d+))?$/;

/** Compares two versions of an API: `v1alpha1` < `v1beta2` < `v1` < `v2`. A malformed version is the oldest. */
export function compareApiVersions(a: string, b: string): number {
	const [left, right] = [rank(a), rank(b)];
	for (const [i, part] of left.entries()) {
		const difference = part - (right[i] ?? 0);
		if (difference !== 0) {
			return difference;
		}
	}
	return 0;
}

function rank(version: string): readonly number[] {
	const match = pattern.exec(version);
	if (match === null) {
		return [-1, 0, 0];
	}
	const [, major, stage, minor] = match;
	return [Number(major), stage === undefined ? 2 : stage === "beta" ? 1 : 0, Number(minor ?? 0)];
}
