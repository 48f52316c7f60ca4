/** The items of several iterators, one after the other. Its end, and `return`, end all of them. */
export function concatenated<T>(
	iterators: readonly IteratorObject<T, undefined>[],
): IteratorObject<T, undefined> {
	const [only] = iterators;
	return iterators.length === 1 && only !== undefined ? only : each(iterators);
}

function* each<T>(iterators: readonly IteratorObject<T, undefined>[]): Generator<T, undefined> {
	try {
		for (const iterator of iterators) {
			yield* iterator;
		}
	} finally {
		for (const iterator of iterators) {
			iterator.return?.();
		}
	}
}
