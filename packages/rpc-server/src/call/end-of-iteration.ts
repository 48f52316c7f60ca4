let pending: Promise<void> | undefined;

/**
 * Resolves when all input available in this iteration of the event loop has been handled. All callers share one
 * promise.
 */
export function endOfIteration(): Promise<void> {
	pending ??= new Promise((resolve) => {
		setImmediate(() => {
			pending = undefined;
			resolve();
		});
	});
	return pending;
}
