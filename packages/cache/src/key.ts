import type { TenancyLike, TypeLike } from "@plinth/resource";

/**
 * What an index files a resource under: segments, of which a key may have any number. Keys are
 * compared segment by segment, and one is a prefix of another where the other begins with all of its
 * segments.
 */
export type Key = readonly string[];

/** All keys that begin with the segments and whose next segment begins with `open`. */
export interface OpenKey {
	readonly segments: Key;
	readonly open: string;
}

/** What a reader asks an index for. */
export type KeyQuery = Key | OpenKey;

/** A reference, an ID, or the part of one that is known. */
export interface ReferenceLike {
	readonly type?: Pick<TypeLike, "group" | "kind"> | undefined;
	readonly tenancy?: TenancyLike | undefined;
	readonly name?: string;
	/** The beginning of the name, instead of a name. */
	readonly namePrefix?: string;
}

/** A reference that means one thing, and not what begins so. */
export type WholeReference = ReferenceLike & { readonly namePrefix?: never };

/** The unit that stands for all. */
const wildcard = "*";

/**
 * The key of a reference: group, kind, partition, namespace, name. Uid, section and group version
 * do not matter.
 *
 * A reference with a name is whole, and a unit of tenancy that it lacks is one that the scope of
 * its type lacks. Without one, the key ends where the first unit is empty, and is a prefix of the keys of
 * all that it may mean. A `*` ends it in any case.
 */
export function referenceKey(reference: WholeReference): Key;
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
 * As `referenceKey`, with the uid as the last segment. Without a uid it is a prefix of the keys of
 * all incarnations.
 */
export function referenceKeyWithUid(reference: WholeReference & { readonly uid?: string }): Key {
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
	return namePrefix ? { segments, open: namePrefix } : segments;
}

/** Whether a part of a reference says something. */
export function isUnit(unit: string | undefined): unit is string {
	return unit !== undefined && unit !== "" && unit !== wildcard;
}

/** Whether the query is for the beginning of a segment. */
export function isOpen(query: KeyQuery): query is OpenKey {
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

/** Whether it is a key or an open key. */
export function isKeyQuery(value: unknown): value is KeyQuery {
	if (Array.isArray(value)) {
		return isKey(value);
	}
	return (
		typeof value === "object" &&
		value !== null &&
		"segments" in value &&
		isKey(value.segments) &&
		"open" in value &&
		typeof value.open === "string"
	);
}

/** Whether both hold the same, in the same order. */
export function keysEqual<T>(a: readonly T[], b: readonly T[]): boolean {
	return a.length === b.length && a.every((segment, i) => segment === b[i]);
}

/** The order of keys: by the first segment that differs, a prefix before what it is a prefix of. */
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
