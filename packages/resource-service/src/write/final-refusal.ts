const finalRefusals = new WeakSet<object>();

/** Marks an error as final: no newer state leads to another result. Returns the error. */
export function asFinal<Refusal extends object>(refusal: Refusal): Refusal {
	finalRefusals.add(refusal);
	return refusal;
}

/** Whether an error was marked as final. */
export function isFinal(failure: unknown): boolean {
	return typeof failure === "object" && failure !== null && finalRefusals.has(failure);
}

/** The function, whose errors are final, as it decides on the newest state. */
export function decidesFinally<Input, Output>(
	decide: (newest: Input) => Output,
): (newest: Input) => Output {
	return (newest) => {
		try {
			return decide(newest);
		} catch (failure) {
			throw failure instanceof Error ? asFinal(failure) : failure;
		}
	};
}
