/** A JSON object. */
export type JsonObject = { readonly [member: string]: unknown };

/** @throws Error if the value is not an object. */
export function objectOf(value: unknown): JsonObject {
	if (typeof value !== "object" || value === null || Array.isArray(value)) {
		throw new Error(`not an object: ${JSON.stringify(value)}`);
	}
	return { ...value };
}

/** The objects of a list; none if it is absent. */
export function objectsOf(value: unknown): readonly JsonObject[] {
	return Array.isArray(value) ? value.map(objectOf) : [];
}

/** A string; empty if it is absent. */
export function textOf(value: unknown): string {
	return typeof value === "string" ? value : "";
}
