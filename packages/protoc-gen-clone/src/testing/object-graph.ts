/** An object of a graph and its path. */
interface Visit {
	readonly object: object;
	readonly path: string;
}

/**
 * All objects that can be reached through own properties, including the buffers of typed arrays. Depth first,
 * each object at most once. Prototypes are not followed.
 */
function* objectsOf(root: unknown): Generator<Visit> {
	const seen = new Set<object>();
	const waiting: { readonly value: unknown; readonly path: string }[] = [{ value: root, path: "" }];
	for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
		const { value, path } = next;
		if (typeof value !== "object" || value === null || seen.has(value)) {
			continue;
		}
		seen.add(value);
		yield { object: value, path };
		if (ArrayBuffer.isView(value)) {
			waiting.push({ value: value.buffer, path: `${path}.buffer` });
			continue;
		}
		for (const key of Reflect.ownKeys(value)) {
			waiting.push({ value: Reflect.get(value, key), path: `${path}.${String(key)}` });
		}
	}
}

/** The path of an object in `copy` that is also in `original`; `undefined` if there is none. */
export function sharedObject(original: unknown, copy: unknown): string | undefined {
	const objects = new Set<object>();
	for (const { object } of objectsOf(original)) {
		objects.add(object);
	}
	for (const { object, path } of objectsOf(copy)) {
		if (objects.has(object)) {
			return path || "the root";
		}
	}
	return undefined;
}

/** Freezes all objects of a graph that can be frozen. */
export function deepFreeze(root: unknown): void {
	for (const { object } of objectsOf(root)) {
		if (!ArrayBuffer.isView(object) && !(object instanceof ArrayBuffer)) {
			Object.freeze(object);
		}
	}
}

/** The path of a frozen object of a graph; `undefined` if there is none. */
export function frozenObject(root: unknown): string | undefined {
	for (const { object, path } of objectsOf(root)) {
		if (Object.isFrozen(object)) {
			return path || "the root";
		}
	}
	return undefined;
}

/**
 * The path at which two graphs differ in the prototype of an object, or in its keys or their order;
 * `undefined` if they do not. Primitive values are not compared.
 */
export function differentShape(a: unknown, b: unknown, path = "the root"): string | undefined {
	if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) {
		return typeof a === typeof b ? undefined : path;
	}
	if (ArrayBuffer.isView(a)) {
		return b instanceof Uint8Array ? undefined : path;
	}
	if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) {
		return path;
	}
	const keys = Reflect.ownKeys(a);
	const otherKeys = Reflect.ownKeys(b);
	if (keys.length !== otherKeys.length) {
		return path;
	}
	for (const [i, key] of keys.entries()) {
		if (key !== otherKeys[i]) {
			return path;
		}
		const difference = differentShape(
			Reflect.get(a, key),
			Reflect.get(b, key),
			`${path}.${String(key)}`,
		);
		if (difference !== undefined) {
			return difference;
		}
	}
	return undefined;
}
