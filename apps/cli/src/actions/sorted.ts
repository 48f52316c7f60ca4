import type { JsonValue } from "@bufbuild/protobuf";
import { documentOf, type KnownTypes, valueAt } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { usageFailure } from "../failure.ts";
import { createdAtMs } from "../output/resource-table.ts";

/**
 * Resources in another order, those without a value last. Numbers are ordered by size, texts as people do: `web-2` comes
 * before `web-10`.
 *
 * @param field - `name`, `age` (the youngest first), or a path in the document of a resource, such as `data.priority`.
 * @throws Failure if no resource has the field.
 */
export function sorted(
	resources: readonly Resource[],
	field: string,
	types: KnownTypes,
): readonly Resource[] {
	const keys = new Map(resources.map((each) => [each, keyOf(each, field, types)]));
	if (resources.length > 0 && [...keys.values()].every((key) => key === undefined)) {
		const inData = `data.${field}`;
		const isInData = resources.some((each) => keyOf(each, inData, types) !== undefined);
		const hint = isInData ? `did you mean ${inData}?` : otherFields;
		throw usageFailure(`--sort-by ${JSON.stringify(field)}: no resource has this field; ${hint}`);
	}
	const names = new Intl.Collator("en", { numeric: true });
	return resources.toSorted((a, b) => compare(keys.get(a), keys.get(b), names));
}

const otherFields = "use name, age or a path such as data.priority, as in -o yaml";

type Key = number | string | undefined;

function compare(a: Key, b: Key, names: Intl.Collator): number {
	if (a === undefined || b === undefined) {
		return Number(a === undefined) - Number(b === undefined);
	}
	return typeof a === "number" && typeof b === "number"
		? a - b
		: names.compare(String(a), String(b));
}

function keyOf(resource: Resource, field: string, types: KnownTypes): Key {
	if (field === "age") {
		const createdMs = createdAtMs(resource);
		return createdMs === undefined ? undefined : -createdMs;
	}
	return keyOfValue(valueAt(documentOf(resource, types), field.split(".")));
}

function keyOfValue(value: JsonValue | undefined): Key {
	switch (typeof value) {
		case "number":
		case "string":
			// Integers of 64 bits are text in JSON.
			return typeof value === "string" && /^-?\d+$/.test(value) ? Number(value) : value;
		case "boolean":
			return Number(value);
		default:
			return value === undefined || value === null ? undefined : JSON.stringify(value);
	}
}
