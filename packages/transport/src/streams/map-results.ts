/** The iterable with `map` applied to each result of `next()`, the end included. */
export function mapResults<S, T>(
	iterable: AsyncIterable<S>,
	map: (result: IteratorResult<S, unknown>) => IteratorResult<T, unknown>,
): AsyncIterable<T> {
	return {
		[Symbol.asyncIterator]() {
			const iterator = iterable[Symbol.asyncIterator]();
			const mapped: AsyncIterator<T, unknown> = {
				next: () => iterator.next().then(map),
			};
			// These two are optional: the mapped iterator has them only if the original does.
			if (iterator.throw !== undefined) {
				mapped.throw = (error) => iterator.throw?.(error).then(map) ?? Promise.reject(error);
			}
			if (iterator.return !== undefined) {
				mapped.return = (value) =>
					iterator.return?.(value).then(map) ?? Promise.resolve({ done: true, value });
			}
			return mapped;
		},
	};
}
