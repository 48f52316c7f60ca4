/**
 * Whether shared objects are frozen: everywhere except in production, so that a write to one fails where it
 * happens.
 */
export const sharedObjectsAreFrozen = process.env.NODE_ENV !== "production";

/**
 * Freezes a message and everything that it refers to, except typed arrays, which can't be frozen. The caller
 * must not modify it any more. Does nothing in production.
 */
export function freezeInDevelopment<T extends object>(value: T): T {
	if (sharedObjectsAreFrozen) {
		deepFreeze(value);
	}
	return value;
}

/** Freezes an object and everything that it refers to. Frozen objects are assumed to be frozen deeply. */
export function deepFreeze(value: object): void {
	if (Object.isFrozen(value) || ArrayBuffer.isView(value)) {
		return;
	}
	Object.freeze(value);
	for (const part of Object.values(value)) {
		if (typeof part === "object" && part !== null) {
			deepFreeze(part);
		}
	}
}
