/** Looks until it holds, and answers what it saw; what does not in time fails with what was seen last. */
export async function eventually<Value>(
	look: () => Promise<Value>,
	holds: (value: Value) => boolean,
	timeoutMs = 90_000,
): Promise<Value> {
	const end = Date.now() + timeoutMs;
	for (;;) {
		const value = await look();
		if (holds(value)) {
			return value;
		}
		if (Date.now() > end) {
			throw new Error(`not in ${timeoutMs} ms; last: ${JSON.stringify(value)}`);
		}
		await new Promise((resolve) => setTimeout(resolve, 200));
	}
}
