/** Resolves when the signal has aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
	return new Promise((resolve) => {
		if (signal.aborted) {
			resolve();
		} else {
			signal.addEventListener("abort", () => resolve(), { once: true });
		}
	});
}
