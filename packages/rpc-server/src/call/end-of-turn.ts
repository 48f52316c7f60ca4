let pending: Promise<void> | undefined;

/** Resolves when the input that is available in this turn of the event loop was handled. One promise for all. */
export function endOfTurn(): Promise<void> {
	pending ??= new Promise((resolve) => {
		setImmediate(() => {
			pending = undefined;
			resolve();
		});
	});
	return pending;
}
