import type { Type } from "@plinth/proto";

/** A type by its three names; a `Type` message is one. */
export type TypeLike = Pick<Type, "group" | "groupVersion" | "kind">;

/** Group and kind: the family that the group versions of a type share in storage. */
export type FamilyLike = Pick<Type, "group" | "kind">;

/** The display name of a type: `demo.v2.Artist`. */
export function gvkKey(type: TypeLike): string {
	return `${type.group}.${type.groupVersion}.${type.kind}`;
}

/** The name of a family: `demo.Artist`. */
export function familyKey(type: FamilyLike): string {
	return `${type.group}.${type.kind}`;
}

/** Whether both name the same type, group version included. */
export function sameType(a: TypeLike | undefined, b: TypeLike | undefined): boolean {
	return a?.group === b?.group && a?.kind === b?.kind && a?.groupVersion === b?.groupVersion;
}

const groupPattern = /^[a-z][a-z\d_]+$/;
const groupVersionPattern = /^v([a-z\d]+)?\d$/;
const kindPattern = /^[A-Z][A-Za-z\d]+$/;

/**
 * Checks the three names of a type.
 *
 * @throws Error that names the malformed part.
 */
export function assertWellFormedType(type: TypeLike): void {
	const parts: readonly (readonly [string, string, RegExp])[] = [
		["group", type.group, groupPattern],
		["group version", type.groupVersion, groupVersionPattern],
		["kind", type.kind, kindPattern],
	];
	for (const [part, value, pattern] of parts) {
		if (!pattern.test(value)) {
			throw new Error(
				`resource type ${gvkKey(type)}: ${part} "${value}" does not match ${pattern.source}`,
			);
		}
	}
}
