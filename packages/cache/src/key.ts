import type { TenancyLike, TypeLike } from "@plinth/resource";

/**
 * A key of an index: any number of segments. Keys are compared segment by segment; a key is a prefix of
 * another if the other begins with all of its segments.
 */
export type Key = readonly string[];

/** All keys that begin with the segments and whose next segment begins with `segmentPrefix`. */
export interface KeyPrefix {
	readonly segments: Key;
	readonly segmentPrefix: string;
}

/** The key or prefix that a reader looks up in an index. */
export type KeyQuery = Key | KeyPrefix;

/** A reference, an ID, or the part of one that is known. */
export interface ReferenceLike {
	readonly type?: Pick<TypeLike, "group" | "kind"> | undefined;
	readonly tenancy?: TenancyLike | undefined;
	readonly name?: string;
	/** The beginning of the name, instead of a name. */
	readonly namePrefix?: string;
	/**
	 * Of a copy of another region's resource, that region; `*` for everything, copies or not. Absent or empty for what is no
	 * copy. Reads by ID tell regions apart; keys of references do not have them.
	 */
	readonly region?: string | undefined;
}

/** A reference to one resource, not a prefix. */
export type ExactReference = ReferenceLike & { readonly namePrefix?: never };

/** The unit of tenancy that matches all. */
const wildcard = "*";

/**
 * The key of a reference: group, kind, partition, namespace, name. Uid, section, region and group version
 * do not matter.
 *
 * A reference with a name is complete: units of tenancy that it lacks are not in the scope of its type.
 * Without a name, the key ends before the first empty unit, and is a prefix of the keys of all resources
 * that the reference can match. A `*` always ends the key.
 */
export function referenceKey(reference: ExactReference): Key;
export function referenceKey(reference: ReferenceLike): KeyQuery;
export function referenceKey(reference: ReferenceLike): KeyQuery {
	const { type, tenancy, name, namePrefix } = reference;
	const group = type?.group ?? "";
	const kind = type?.kind ?? "";
	const partition = tenancy?.partition ?? "";
	const namespace = tenancy?.namespace ?? "";
	if (
		isUnit(name) &&
		isUnit(group) &&
		isUnit(kind) &&
		partition !== wildcard &&
		namespace !== wildcard
	) {
		return [group, kind, partition, namespace, name];
	}
	return partialKey([group, kind], [partition, namespace], namePrefix);
}

/**
 * Like `referenceKey`, with the uid as the last segment. Without a uid it is a prefix of the keys of all
 * incarnations.
 */
export function referenceKeyWithUid(reference: ExactReference & { readonly uid?: string }): Key {
	const key = referenceKey(reference);
	return key.length === 5 && reference.uid ? [...key, reference.uid] : key;
}

function partialKey(type: Key, tenancy: Key, namePrefix: string | undefined): KeyQuery {
	const segments: string[] = [];
	for (const unit of type) {
		if (!isUnit(unit)) {
			return segments;
		}
		segments.push(unit);
	}
	for (const unit of tenancy) {
		if (unit === wildcard || (unit === "" && !namePrefix)) {
			return segments;
		}
		segments.push(unit);
	}
	return namePrefix ? { segments, segmentPrefix: namePrefix } : segments;
}

/** Whether a part of a reference is neither empty nor a wildcard. */
export function isUnit(unit: string | undefined): unit is string {
	return unit !== undefined && unit !== "" && unit !== wildcard;
}

/** Whether the query is for the beginning of a segment. */
export function isKeyPrefix(query: KeyQuery): query is KeyPrefix {
	return !Array.isArray(query);
}

/** Whether it is an array of strings. */
export function isKey(value: unknown): value is Key {
	if (!Array.isArray(value)) {
		return false;
	}
	for (let i = 0; i < value.length; i++) {
		if (typeof value[i] !== "string") {
			return false;
		}
	}
	return true;
}

/** Whether it is a key or a key prefix. */
export function isKeyQuery(value: unknown): value is KeyQuery {
	if (Array.isArray(value)) {
		return isKey(value);
	}
	return (
		typeof value === "object" &&
		value !== null &&
		"segments" in value &&
		isKey(value.segments) &&
		"segmentPrefix" in value &&
		typeof value.segmentPrefix === "string"
	);
}

/** Whether both arrays have the same elements in the same order. */
export function keysEqual<T>(a: readonly T[], b: readonly T[]): boolean {
	return a.length === b.length && a.every((segment, i) => segment === b[i]);
}

/** Orders keys by the first segment that differs; a prefix comes before longer keys. */
export function compareKeys(a: Key, b: Key): number {
	const shared = Math.min(a.length, b.length);
	for (let i = 0; i < shared; i++) {
		// Both exist: `shared` is the length of the shorter one.
		const left = a[i]!;
		const right = b[i]!;
		if (left !== right) {
			return left < right ? -1 : 1;
		}
	}
	return a.length - b.length;
}
