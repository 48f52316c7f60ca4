import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isObject, isSameJson, ownField } from "./json.ts";

/** A change of one field, or of one element of a list, between two documents. */
export interface FieldChange {
	/** The keys and positions that lead to it. */
	readonly path: readonly (string | number)[];
	/** Absent if it was added. */
	readonly before?: JsonValue;
	/** Absent if it was removed. */
	readonly after?: JsonValue;
}

/**
 * The changes that turn one document into another, to be made in this order: the elements that a list loses are named from
 * its end on, and each element that it gets has its new position.
 */
export function fieldChanges(before: JsonObject, after: JsonObject): readonly FieldChange[] {
	return ofObjects(before, after, []);
}

/** The path of a change, as in `data.cast[0].actor`. Keys that contain more than a name are quoted. */
export function changedField({ path }: Pick<FieldChange, "path">): string {
	return path
		.map((part, at) => {
			if (typeof part === "number") {
				return `[${part}]`;
			}
			if (!/^[\w-]+$/.test(part)) {
				return `[${JSON.stringify(part)}]`;
			}
			return at === 0 ? part : `.${part}`;
		})
		.join("");
}

type Path = FieldChange["path"];

function ofValues(before: JsonValue, after: JsonValue, path: Path): readonly FieldChange[] {
	if (isObject(before) && isObject(after)) {
		return ofObjects(before, after, path);
	}
	if (Array.isArray(before) && Array.isArray(after)) {
		return ofLists(before, after, path);
	}
	return before === after ? [] : [{ path, before, after }];
}

function ofObjects(before: JsonObject, after: JsonObject, path: Path): readonly FieldChange[] {
	const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
	return [...keys].flatMap((key) =>
		ofField(ownField(before, key), ownField(after, key), [...path, key]),
	);
}

function ofField(
	before: JsonValue | undefined,
	after: JsonValue | undefined,
	path: Path,
): readonly FieldChange[] {
	if (before === undefined) {
		return after === undefined ? [] : [{ path, after }];
	}
	return after === undefined ? [{ path, before }] : ofValues(before, after, path);
}

/** What both lists begin and end with is unchanged. In between, elements are compared one by one, then added or removed. */
function ofLists(
	before: readonly JsonValue[],
	after: readonly JsonValue[],
	path: Path,
): readonly FieldChange[] {
	const shorter = Math.min(before.length, after.length);
	let start = 0;
	while (start < shorter && isSameJson(before[start], after[start])) {
		start += 1;
	}
	let end = 0;
	while (end < shorter - start && isSameJson(before.at(-1 - end), after.at(-1 - end))) {
		end += 1;
	}
	const paired = shorter - end;
	const changed = after
		.slice(start, paired)
		.flatMap((value, at) => ofField(before[start + at], value, [...path, start + at]));
	const added = after
		.slice(paired, after.length - end)
		.map((value, at) => ({ path: [...path, paired + at], after: value }));
	const removed = before
		.slice(paired, before.length - end)
		.map((value, at) => ({ path: [...path, paired + at], before: value }));
	return [...changed, ...added, ...removed.toReversed()];
}
