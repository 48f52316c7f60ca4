import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isObject, isSameJson, ownField } from "@plinth/documents";

/** A field that two people changed differently. */
export interface MergeConflict {
	/** The keys that lead to it. */
	readonly path: readonly string[];
	/** Absent if it was removed. */
	readonly mine?: JsonValue;
	/** Absent if it was removed. */
	readonly theirs?: JsonValue;
}

/** A document with the changes of both sides. */
export interface MergedDocuments {
	/** Where both have changed a field, it has my value. */
	readonly document: JsonObject;
	readonly conflicts: readonly MergeConflict[];
}

/**
 * Merges two changes of one document field by field. A list is one value: it is merged only if one side left it as it was, since
 * a position in a list means nothing when elements come and go.
 */
export function mergeDocuments(
	base: JsonObject,
	mine: JsonObject,
	theirs: JsonObject,
): MergedDocuments {
	const conflicts: MergeConflict[] = [];
	return { document: mergeObjects(base, mine, theirs, [], conflicts), conflicts };
}

/** A document in which a field has another value, or none. */
export function withValue(
	document: JsonObject,
	[key, ...rest]: readonly string[],
	value: JsonValue | undefined,
): JsonObject {
	if (key === undefined) {
		return document;
	}
	const inner = ownField(document, key);
	const next = rest.length === 0 ? value : withValue(isObject(inner) ? inner : {}, rest, value);
	const entries = Object.entries(document).filter(([each]) => each !== key || next !== undefined);
	return next === undefined
		? Object.fromEntries(entries)
		: Object.fromEntries([...entries.filter(([each]) => each !== key), [key, next]]);
}

function mergeObjects(
	base: JsonObject,
	mine: JsonObject,
	theirs: JsonObject,
	path: readonly string[],
	conflicts: MergeConflict[],
): JsonObject {
	const keys = new Set([...Object.keys(mine), ...Object.keys(theirs)]);
	const entries = [...keys].flatMap((key) => {
		const value = mergeValues(
			ownField(base, key),
			ownField(mine, key),
			ownField(theirs, key),
			[...path, key],
			conflicts,
		);
		return value === undefined ? [] : [[key, value] as const];
	});
	// Any key is valid, even `__proto__`, so entries must not be assigned to an object.
	return Object.fromEntries(entries);
}

function mergeValues(
	base: JsonValue | undefined,
	mine: JsonValue | undefined,
	theirs: JsonValue | undefined,
	path: readonly string[],
	conflicts: MergeConflict[],
): JsonValue | undefined {
	if (isSameJson(mine, theirs) || isSameJson(base, theirs)) {
		return mine;
	}
	if (isSameJson(base, mine)) {
		return theirs;
	}
	if (isObject(mine) && isObject(theirs)) {
		return mergeObjects(isObject(base) ? base : {}, mine, theirs, path, conflicts);
	}
	conflicts.push({
		path,
		...(mine !== undefined && { mine }),
		...(theirs !== undefined && { theirs }),
	});
	return mine;
}
