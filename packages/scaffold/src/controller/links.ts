import type { KnownType, ReferenceField } from "../project/project-types.ts";

/**
 * How a managed resource depends on those of a watched type:
 *
 * - `one`: it has one reference to them.
 * - `many`: it has several.
 * - `back`: they reference it.
 * - `none`: neither references the other, so that it depends on all of them.
 */
export type LinkKind = "one" | "many" | "back" | "none";

/** A managed type's dependency on a watched one. */
export interface Link {
	readonly kind: LinkKind;
	readonly watched: KnownType;
	/** The fields that reference: of the managed type, or for `back` of the watched one. */
	readonly fields: readonly ReferenceField[];
}

/** The dependency that the references of two types show. */
export function linkOf(managed: KnownType, watched: KnownType): Link {
	const forth = managed.references.filter(({ family }) => family === watched.family);
	if (forth.length > 0) {
		const [only, ...others] = forth;
		const isOne = others.length === 0 && only?.field.fieldKind === "message";
		return { kind: isOne ? "one" : "many", watched, fields: forth };
	}
	const back = watched.references.filter(({ family }) => family === managed.family);
	return { kind: back.length > 0 ? "back" : "none", watched, fields: back };
}

/** The name of the index by the fields of a link. */
export function indexName({ fields }: Link): string {
	const name = fields[0]?.field.name ?? "";
	// The cache has an index of that name already: by ID.
	return name === "id" ? "id-reference" : name;
}

/** TypeScript for the IDs of the targets of some fields of `data`. `type` is the type of the targets. */
export function targetIds(fields: readonly ReferenceField[], type: string): string {
	const id = `idOf(${type}, each.name, each.tenancy)`;
	const [only, ...others] = fields.map(({ field }) => ({
		value: `data.${field.localName}`,
		kind: field.fieldKind,
	}));
	if (only !== undefined && others.length === 0 && only.kind !== "message") {
		const list = only.kind === "map" ? `Object.values(${only.value})` : only.value;
		return `${list}.map((each) => ${id})`;
	}
	const values = [only, ...others].flatMap((each) => {
		switch (each?.kind) {
			case "message":
				return [each.value];
			case "map":
				return [`...Object.values(${each.value})`];
			default:
				return each === undefined ? [] : [`...${each.value}`];
		}
	});
	return `[${values.join(", ")}].flatMap((each) =>
		each === undefined ? [] : [${id}],
	)`;
}
