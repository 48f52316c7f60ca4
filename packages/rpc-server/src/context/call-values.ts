import type { ContextKey, ContextValues } from "@connectrpc/connect";

/** Context values for a handful of keys: cheaper to create than those of Connect. */
export class CallValues implements ContextValues {
	readonly #keys: symbol[] = [];
	readonly #values: unknown[] = [];

	get<T>(key: ContextKey<T>): T {
		const index = this.#keys.indexOf(key.id);
		// A value was set with the same key, and so with its type.
		return index < 0 ? key.defaultValue : (this.#values[index] as T);
	}

	set<T>(key: ContextKey<T>, value: T): this {
		const index = this.#keys.indexOf(key.id);
		if (index < 0) {
			this.#keys.push(key.id);
			this.#values.push(value);
		} else {
			this.#values[index] = value;
		}
		return this;
	}

	delete(key: ContextKey<unknown>): this {
		const index = this.#keys.indexOf(key.id);
		if (index >= 0) {
			this.#keys.splice(index, 1);
			this.#values.splice(index, 1);
		}
		return this;
	}
}
