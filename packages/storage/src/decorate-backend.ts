import type { StorageBackend } from "./backend.ts";

/**
 * Returns the backend with some of its methods replaced. Everything else passes through, including methods
 * of its class and properties that are not part of `StorageBackend`. Only `lookupNow` goes if `lookup` or `read` is
 * replaced, since it would pass by what replaces them.
 */
export function decorateBackend<Backend extends StorageBackend>(
	backend: Backend,
	overrides: Partial<StorageBackend>,
): Backend {
	const decorated = {};
	const replacesReads = overrides.lookup !== undefined || overrides.read !== undefined;
	for (const key of keysOf(backend)) {
		if (key !== "lookupNow" || !replacesReads) {
			Object.defineProperty(decorated, key, passThrough(backend, key));
		}
	}
	return Object.assign(decorated as Backend, overrides);
}

function passThrough(backend: object, key: PropertyKey): PropertyDescriptor {
	const shared = { enumerable: true, configurable: true };
	// The backend stays `this`: its class may have private fields.
	return typeof Reflect.get(backend, key) === "function"
		? {
				...shared,
				writable: true,
				value: (...args: unknown[]) => Reflect.get(backend, key).apply(backend, args),
			}
		: { ...shared, get: () => Reflect.get(backend, key) };
}

/** The keys of an object and of its classes. */
function keysOf(object: object): Set<PropertyKey> {
	const keys = new Set<PropertyKey>();
	let level: object | null = object;
	while (level !== null && level !== Object.prototype) {
		for (const key of Reflect.ownKeys(level)) {
			keys.add(key);
		}
		level = Object.getPrototypeOf(level);
	}
	keys.delete("constructor");
	return keys;
}
