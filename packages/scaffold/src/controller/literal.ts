import type { DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";

/** The width that a literal on one line may have. */
const maxWidth = 60;

/**
 * Data in its JSON form as the TypeScript that passes it to `create`: the object itself, if its fields have the same
 * values in TypeScript.
 *
 * @returns `undefined` if a value has another form in TypeScript, or no field of that name exists.
 */
export function initLiteral(message: DescMessage, data: JsonObject): string | undefined {
	const value = initOf(message, data);
	return value === undefined ? undefined : literalOf(value);
}

/** A JSON value as TypeScript, indented with tabs. */
export function literalOf(value: JsonValue, depth = 0): string {
	if (typeof value !== "object" || value === null) {
		return JSON.stringify(value);
	}
	const items = Array.isArray(value)
		? value.map((each) => literalOf(each, depth + 1))
		: Object.entries(value).map(
				([key, each]) => `${propertyName(key)}: ${literalOf(each, depth + 1)}`,
			);
	const [open, close, padding] = Array.isArray(value) ? ["[", "]", ""] : ["{", "}", " "];
	if (items.length === 0) {
		return `${open}${close}`;
	}
	const line = `${open}${padding}${items.join(", ")}${padding}${close}`;
	if (line.length <= maxWidth && !line.includes("\n")) {
		return line;
	}
	const indent = "\t".repeat(depth + 1);
	return `${open}\n${items.map((each) => `${indent}${each},\n`).join("")}${"\t".repeat(depth)}${close}`;
}

function propertyName(key: string): string {
	return /^[A-Za-z_$][\w$]*$/.test(key) && key !== "__proto__" ? key : `[${JSON.stringify(key)}]`;
}

function initOf(message: DescMessage, data: JsonObject): JsonObject | undefined {
	const init: JsonObject = {};
	for (const [key, value] of Object.entries(data)) {
		const field = message.fields.find(({ name, jsonName }) => name === key || jsonName === key);
		const converted = field && field.oneof === undefined ? fieldValue(field, value) : undefined;
		if (field === undefined || converted === undefined) {
			return undefined;
		}
		init[field.localName] = converted;
	}
	return init;
}

function fieldValue(field: DescField, value: JsonValue): JsonValue | undefined {
	switch (field.fieldKind) {
		case "scalar":
			return scalarOf(field.scalar, value);
		case "message":
			return messageOf(field.message, value);
		case "list": {
			const items = Array.isArray(value) ? value : [undefined];
			const converted = items.map((each) => itemOf(field, each));
			return converted.every((each) => each !== undefined) ? converted : undefined;
		}
		case "map": {
			if (!isObject(value)) {
				return undefined;
			}
			const entries = Object.entries(value).map(
				([key, each]) => [key, itemOf(field, each)] as const,
			);
			return entries.every((entry): entry is readonly [string, JsonValue] => entry[1] !== undefined)
				? Object.fromEntries(entries)
				: undefined;
		}
		default:
			return undefined;
	}
}

function itemOf(
	{
		scalar,
		message,
	}: { readonly scalar?: ScalarType | undefined; readonly message?: DescMessage | undefined },
	value: JsonValue | undefined,
): JsonValue | undefined {
	if (value === undefined) {
		return undefined;
	}
	if (message !== undefined) {
		return messageOf(message, value);
	}
	return scalar === undefined ? undefined : scalarOf(scalar, value);
}

function messageOf(message: DescMessage, value: JsonValue): JsonObject | undefined {
	return isObject(value) && !message.typeName.startsWith("google.protobuf.")
		? initOf(message, value)
		: undefined;
}

/** Whether numbers of the type are numbers in TypeScript. */
const numbers: ReadonlySet<ScalarType> = new Set([
	...[ScalarType.DOUBLE, ScalarType.FLOAT],
	...[ScalarType.INT32, ScalarType.UINT32, ScalarType.SINT32],
	...[ScalarType.FIXED32, ScalarType.SFIXED32],
]);

function scalarOf(type: ScalarType, value: JsonValue): JsonValue | undefined {
	const fits =
		(type === ScalarType.STRING && typeof value === "string") ||
		(type === ScalarType.BOOL && typeof value === "boolean") ||
		(numbers.has(type) && typeof value === "number");
	return fits ? value : undefined;
}

function isObject(value: JsonValue): value is JsonObject {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}
