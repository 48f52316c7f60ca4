import { setTimeout } from "node:timers/promises";

/** Repeats a check until it finds nothing, or the time limit. Returns the last result. */
export async function settle(
	read: () => Promise<readonly string[]>,
	limitMs: number,
): Promise<readonly string[]> {
	const end = performance.now() + limitMs;
	for (;;) {
		const left = await read();
		if (left.length === 0 || performance.now() > end) {
			return left;
		}
		await setTimeout(2000);
	}
}
