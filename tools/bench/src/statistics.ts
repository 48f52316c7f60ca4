/** The value below which `share` of the numbers are: 0.5 for the median, 1 for the maximum. */
export function quantile(numbers: readonly number[], share: number): number {
	const sorted = numbers.toSorted((a, b) => a - b);
	const position = (sorted.length - 1) * share;
	const below = sorted[Math.floor(position)] ?? Number.NaN;
	const above = sorted[Math.ceil(position)] ?? Number.NaN;
	return below + (above - below) * (position % 1);
}

/** With about three significant digits. */
export function format(value: number): string {
	const magnitude = Math.abs(value);
	const digits = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2;
	return value.toLocaleString("en-US", {
		minimumFractionDigits: digits,
		maximumFractionDigits: digits,
	});
}
