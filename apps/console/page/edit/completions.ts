import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { commentOf, type KnownType, type KnownTypes, scalarName } from "@plinth/documents";
import type { YamlCursor, YamlKey } from "./yaml-cursor.ts";

/** Something that can be written at the cursor. */
export interface Completion {
	readonly label: string;
	/** Its type. */
	readonly detail?: string;
	/** What is inserted, if not the label. */
	readonly insert?: string;
	/** The comment of its proto, if it has one. */
	readonly info?: string;
}

const rootFields: readonly (readonly [name: string, detail: string])[] = [
	["type", "the resource type"],
	["name", "string"],
	["partition", "string"],
	["namespace", "string"],
	["owner", "a resource"],
	["owner_references", "resources"],
	["metadata", "strings by key"],
	["data", "the fields of the type"],
];

/** What can be written at the cursor of a document of this type. */
export function completionsAt(
	{ path, key }: YamlCursor,
	type: KnownType,
	types: Pick<KnownTypes, "all">,
): readonly Completion[] {
	const [first, ...rest] = path;
	if (first === undefined) {
		return key === undefined
			? rootFields.map(([name, detail]) => keyOf(name, detail))
			: rootValues(key, types);
	}
	const message = first === "data" ? messageAt(type.schema, rest) : undefined;
	if (message === undefined) {
		return [];
	}
	return key === undefined
		? message.fields.map((field) => described(keyOf(field.name, detailOf(field)), field))
		: valuesOf(message.fields.find(({ name }) => name === key));
}

function rootValues(key: string, types: Pick<KnownTypes, "all">): readonly Completion[] {
	return key === "type" ? types.all.map((each) => described({ label: each.key }, each.schema)) : [];
}

/** The comment of the field with a key in a document of this type; `undefined` if there is none. */
export function commentAt({ path, key }: YamlKey, type: KnownType): string | undefined {
	const [first, ...rest] = path;
	const message = first === "data" ? messageAt(type.schema, rest) : undefined;
	const field = message?.fields.find(({ name }) => name === key);
	return field && commentOf(field);
}

function described(completion: Completion, of: Parameters<typeof commentOf>[0]): Completion {
	const info = commentOf(of);
	return info === undefined ? completion : { ...completion, info };
}

function keyOf(name: string, detail: string): Completion {
	return { label: name, detail, insert: `${name}: ` };
}

/** The message whose fields are below a path; `undefined` if there is none, or its form is not that of fields. */
function messageAt(
	message: DescMessage,
	[name, ...rest]: readonly string[],
): DescMessage | undefined {
	if (name === undefined) {
		return message;
	}
	const field = message.fields.find((each) => each.name === name);
	if (field?.message === undefined) {
		return undefined;
	}
	if (field.fieldKind !== "map") {
		return messageAt(field.message, rest);
	}
	// The next one is a key of the map.
	return rest.length === 0 ? undefined : messageAt(field.message, rest.slice(1));
}

function detailOf(field: DescField): string {
	switch (field.fieldKind) {
		case "map":
			return `map of ${elementOf(field)}`;
		case "list":
			return `list of ${elementOf(field)}`;
		default:
			return elementOf(field);
	}
}

function elementOf({ message, enum: names, scalar }: DescField): string {
	return message?.name ?? names?.name ?? (scalar === undefined ? "" : scalarName(scalar));
}

function valuesOf(field: DescField | undefined): readonly Completion[] {
	if (field?.enum !== undefined) {
		const { values, name: detail } = field.enum;
		return values.map((value) => described({ label: value.name, detail }, value));
	}
	return field?.fieldKind === "scalar" && field.scalar === ScalarType.BOOL
		? [{ label: "true" }, { label: "false" }]
		: [];
}
