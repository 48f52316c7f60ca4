import { setTimeout } from "node:timers/promises";

/** Looks until nothing is left over, for so long at most; answers what is left then. */
export async function settle(
	look: () => Promise<readonly string[]>,
	limitMs: number,
): Promise<readonly string[]> {
	const end = performance.now() + limitMs;
	for (;;) {
		const left = await look();
		if (left.length === 0 || performance.now() > end) {
			return left;
		}
		await setTimeout(2000);
	}
}
