/** A stream of one message, for methods that take one. */
export class StreamOfOne<T> implements AsyncIterableIterator<T, undefined> {
	readonly #message: T;
	#isOver = false;

	constructor(message: T) {
		this.#message = message;
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	async next(): Promise<IteratorResult<T, undefined>> {
		if (this.#isOver) {
			return { done: true, value: undefined };
		}
		this.#isOver = true;
		return { done: false, value: this.#message };
	}

	async return(): Promise<IteratorResult<T, undefined>> {
		this.#isOver = true;
		return { done: true, value: undefined };
	}
}
