/**
 * Runs an action for each item, `concurrency` of them at a time. One that fails holds up no other; the
 * first failure is thrown when all have been tried.
 */
export async function each<T>(
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
