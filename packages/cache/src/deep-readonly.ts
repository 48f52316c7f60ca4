type Scalar = string | number | bigint | boolean | symbol | null | undefined;

/** A value that must not be modified, at any depth. Typed arrays are unchanged. */
export type DeepReadonly<T> = T extends Scalar | ArrayBufferView | ((...args: never[]) => unknown)
	? T
	: T extends ReadonlyMap<infer K, infer V>
		? ReadonlyMap<K, DeepReadonly<V>>
		: T extends readonly (infer E)[]
			? readonly DeepReadonly<E>[]
			: { readonly [K in keyof T]: DeepReadonly<T[K]> };
