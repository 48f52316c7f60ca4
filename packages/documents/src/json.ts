import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** Whether a value has fields. */
export function isObject(json: JsonValue | undefined): json is JsonObject {
	return typeof json === "object" && json !== null && !Array.isArray(json);
}

/** A field of an object, not what all objects inherit. */
export function ownField(object: JsonObject, key: string): JsonValue | undefined {
	return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Whether two values are equal. The order of the fields of an object does not matter. */
export function isSameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
	if (isObject(a) && isObject(b)) {
		const keys = Object.keys(a);
		return (
			keys.length === Object.keys(b).length &&
			keys.every((key) => Object.hasOwn(b, key) && isSameJson(a[key], b[key]))
		);
	}
	if (Array.isArray(a) && Array.isArray(b)) {
		return a.length === b.length && a.every((each, at) => isSameJson(each, b[at]));
	}
	return a === b;
}
