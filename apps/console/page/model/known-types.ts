import type { KnownType, KnownTypes } from "@plinth/documents";
import type { FamilyLike } from "@plinth/resource";

/** The type of a family that is listed last: the newest group version, if there are several. */
export function typeOfFamily(
	types: KnownTypes,
	{ group, kind }: FamilyLike,
): KnownType | undefined {
	return types.all.findLast(({ type }) => type.group === group && type.kind === kind);
}
