/**
 * Whether shared objects are frozen: everywhere but in production, so that a write to one shows
 * where it happens.
 */
export const freezesShared = process.env.NODE_ENV !== "production";

/**
 * Freezes a message and all that it holds, but for typed arrays, which can't be; the caller gives
 * up writing to it. Does nothing in production.
 */
export function freezeInDevelopment<T extends object>(value: T): T {
	if (freezesShared) {
		deepFreeze(value);
	}
	return value;
}

/** Freezes an object and all that it holds. What is frozen already is taken to be so at every depth. */
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
