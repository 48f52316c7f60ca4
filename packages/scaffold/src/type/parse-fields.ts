import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import { suggestion } from "../names/suggestion.ts";
import { snakeCase } from "../names/words.ts";
import type { KnownType, ProjectTypes } from "../project/project-types.ts";
import { ScaffoldError } from "../scaffold-error.ts";

/** What happens to a reference when its target is deleted. */
export const deleteRules = ["block", "cascade", "unset"] as const;

/** One of the rules. */
export type DeleteRule = (typeof deleteRules)[number];

/** The types of fields that can be generated, with their form in protos and a value in YAML. */
export const fieldTypes = {
	string: { proto: "string", example: "example" },
	bool: { proto: "bool", example: true },
	int32: { proto: "int32", example: 1 },
	int64: { proto: "int64", example: 1 },
	uint32: { proto: "uint32", example: 1 },
	uint64: { proto: "uint64", example: 1 },
	float: { proto: "float", example: 1.5 },
	double: { proto: "double", example: 1.5 },
	bytes: { proto: "bytes", example: "ZXhhbXBsZQ==" },
	duration: { proto: "google.protobuf.Duration", example: "60s" },
	timestamp: { proto: "google.protobuf.Timestamp", example: "2026-01-01T00:00:00Z" },
} as const;

/** A field with a value. */
export interface PlainField {
	readonly kind: "plain";
	readonly name: string;
	readonly type: keyof typeof fieldTypes;
}

/** A field that is a reference. */
export interface NewReference {
	readonly kind: "reference";
	readonly name: string;
	/** The full name of the targets' type. */
	readonly type: string;
	/** The kind of the targets. */
	readonly target: string;
	readonly rule: DeleteRule;
}

/** A field of a new type. */
export type NewField = PlainField | NewReference;

/** The new type, as far as references to itself need it. */
export interface NewType {
	readonly key: string;
	readonly kind: string;
}

/**
 * The fields of a new type, from texts such as `capacity:uint32` and `Project:block`.
 *
 * @throws ScaffoldError that names the first malformed text, unknown type or name that is taken.
 */
export function parseFields(
	fields: readonly string[],
	references: readonly string[],
	known: ProjectTypes,
	self: NewType,
): readonly NewField[] {
	const found = [
		...listed(fields).map(parseField),
		...listed(references).map((text) => parseReference(text, known, self)),
	];
	const taken = new Map<string, NewField>();
	for (const field of found) {
		// Protobuf compares names without underscores, as they are in JSON.
		const key = protoCamelCase(field.name).toLowerCase();
		const other = taken.get(key);
		if (other !== undefined) {
			throw new ScaffoldError(
				`two fields would be named ${other.name}${other.name === field.name ? "" : ` and ${field.name}, which are the same in JSON`}: give a reference another name with name=Type:rule, as in backup=Zone:unset`,
			);
		}
		taken.set(key, field);
	}
	return found;
}

/** The items of repeated flags, each of which may list several with commas. */
function listed(texts: readonly string[]): readonly string[] {
	return texts.flatMap((text) => text.split(",")).map((each) => each.trim());
}

function parseField(text: string): PlainField {
	const [name = "", type = "", ...more] = text.split(":");
	if (name === "" || type === "" || more.length > 0) {
		throw new ScaffoldError(
			`"${text}" is not a field: it must be name:type, as in capacity:uint32`,
		);
	}
	checkFieldName(name);
	if (!isFieldType(type)) {
		throw new ScaffoldError(
			`the field ${name} can't have the type "${type}"${suggestion(type, Object.keys(fieldTypes))}`,
		);
	}
	return { kind: "plain", name, type };
}

function isFieldType(text: string): text is keyof typeof fieldTypes {
	return Object.hasOwn(fieldTypes, text);
}

function parseReference(text: string, known: ProjectTypes, self: NewType): NewReference {
	const [, given, target = "", rule = "block"] =
		/^(?:([^=:]*)=)?([^=:]+)(?::([^=:]*))?$/.exec(text) ?? [];
	if (target === "") {
		throw new ScaffoldError(
			`"${text}" is not a reference: it must be Type:rule or name=Type:rule, as in Project:block`,
		);
	}
	const { key, kind } = targetOf(target, known, self);
	if (!isRule(rule)) {
		throw new ScaffoldError(
			`"${rule}" is no rule for the deletion of ${withThe(kind)}${suggestion(rule, deleteRules)}`,
		);
	}
	const name = given ?? snakeCase(kind);
	checkFieldName(name);
	return { kind: "reference", name, type: key, target: kind, rule };
}

function withThe(kind: string): string {
	return `the referenced ${kind}`;
}

function isRule(text: string): text is DeleteRule {
	return deleteRules.some((each) => each === text);
}

function checkFieldName(name: string): void {
	if (!/^[a-z][a-z\d]*(_[a-z][a-z\d]*)*$/.test(name) || name.length > 60) {
		throw new ScaffoldError(
			`"${name}" can't be the name of a field: it must be in lower snake_case, as in size_gib`,
		);
	}
}

/** The type that a reference names: one of the project, itself, a tenancy or one of an imported service. */
function targetOf(name: string, { types, importedGroups }: ProjectTypes, self: NewType): NewType {
	if (name === self.kind || name === self.key) {
		return self;
	}
	const usable = types.filter(
		(type) => type.isOwn || type.message.file.proto.package === "plinth.tenancy.v1",
	);
	const found = usable.filter(({ key, kind, isOwn }) => key === name || (isOwn && kind === name));
	const [type] = found;
	if (found.length > 1) {
		throw new ScaffoldError(
			`several types are named ${name}: give the full name, one of ${found.map(({ key }) => key).join(", ")}`,
		);
	}
	return type ?? foreignType(name, usable, importedGroups);
}

function foreignType(
	name: string,
	usable: readonly KnownType[],
	importedGroups: ReadonlySet<string>,
): NewType {
	const own = usable.filter(({ isOwn }) => isOwn);
	const [, group, kind] =
		/^([a-z][a-z\d_]+)\.v(?:[a-z\d]+)?\d\.([A-Z][A-Za-z\d]+)$/.exec(name) ?? [];
	if (group === undefined || kind === undefined) {
		const names = own.map((each) => (name.includes(".") ? each.key : each.kind));
		throw new ScaffoldError(`no type ${name} in the project's protos${suggestion(name, names)}`);
	}
	if (!importedGroups.has(group)) {
		const near = suggestion(
			name,
			own.map(({ key }) => key),
		);
		throw new ScaffoldError(
			near.includes("did you mean")
				? `no type ${name} in the project's protos${near}`
				: `no type ${name} in the project's protos: for a type of another service, name the group ${group} in the imports of the option (plinth.schema.v1.service) first`,
		);
	}
	return { key: name, kind };
}
