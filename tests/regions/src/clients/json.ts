/** An object of JSON. */
export type JsonObject = { readonly [member: string]: unknown };

/** @throws Error where it is none. */
export function objectOf(value: unknown): JsonObject {
	if (typeof value !== "object" || value === null || Array.isArray(value)) {
		throw new Error(`no object: ${JSON.stringify(value)}`);
	}
	return { ...value };
}

/** The objects of a list; none where it is absent. */
export function objectsOf(value: unknown): readonly JsonObject[] {
	return Array.isArray(value) ? value.map(objectOf) : [];
}

/** A text; empty where it is absent. */
export function textOf(value: unknown): string {
	return typeof value === "string" ? value : "";
}
