/** Resolves when one of the signals has aborted. */
export function aborted(...signals: readonly AbortSignal[]): Promise<void> {
	return new Promise((resolve) => {
		const onAbort = () => {
			for (const signal of signals) {
				signal.removeEventListener("abort", onAbort);
			}
			resolve();
		};
		if (signals.some((signal) => signal.aborted)) {
			resolve();
			return;
		}
		for (const signal of signals) {
			signal.addEventListener("abort", onAbort);
		}
	});
}
