/** The iterable with `map` applied to what each `next()` answers, the end included. */
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
			// An iterator without these two must not seem to have them.
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
