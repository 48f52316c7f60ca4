/** Polls until the value satisfies the condition, and returns it. Fails with the last value after the timeout. */
export async function eventually<Value>(
	look: () => Promise<Value>,
	holds: (value: Value) => boolean,
	timeoutMs = 300_000,
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
