/**
 * Runs an action for each item with limited concurrency. A failure does not stop the other actions; the first
 * one is thrown after all items have been processed.
 */
export async function forEachConcurrently<T>(
	items: readonly T[],
	concurrency: number,
	action: (item: T) => Promise<void>,
): Promise<void> {
	const failures: unknown[] = [];
	const left = items.values();
	const worker = async () => {
		for (const item of left) {
			try {
				await action(item);
			} catch (failure) {
				failures.push(failure);
			}
		}
	};
	await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
	if (failures.length > 0) {
		throw failures[0];
	}
}
