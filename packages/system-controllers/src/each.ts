/** Runs an action for each item, `concurrency` of them at a time. Stops at the first that fails. */
export async function each<T>(
	items: readonly T[],
	concurrency: number,
	action: (item: T) => Promise<void>,
): Promise<void> {
	const left = items.values();
	const worker = async () => {
		for (const item of left) {
			await action(item);
		}
	};
	await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
}
