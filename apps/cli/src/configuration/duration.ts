import { usageFailure } from "../failure.ts";

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Milliseconds from `500ms`, `30s`, `2m`, `1h` or `0`, the value of `flag`. @throws Failure if it is malformed. */
export function parseDuration(flag: string, text: string): number {
	if (text === "0") {
		return 0;
	}
	const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
	const unitMs = unitsMs[unit];
	if (amount === undefined || unitMs === undefined) {
		throw usageFailure(
			`${flag} ${JSON.stringify(text)} is not a duration: write it as 500ms, 30s, 2m or 1h`,
		);
	}
	return Number(amount) * unitMs;
}

/** A duration in one unit, for people: `45s`, `12m`, `5h`, `3d`, `2y`. */
export function shortDuration(ms: number): string {
	const seconds = Math.max(0, Math.floor(ms / 1_000));
	const steps: readonly (readonly [number, string])[] = [
		[365 * 86_400, "y"],
		[2 * 86_400, "d"],
		[2 * 3_600, "h"],
		[2 * 60, "m"],
	];
	for (const [limit, unit] of steps) {
		if (seconds >= limit) {
			const size = { y: 365 * 86_400, d: 86_400, h: 3_600, m: 60 }[unit] ?? 1;
			return `${Math.floor(seconds / size)}${unit}`;
		}
	}
	return `${seconds}s`;
}
