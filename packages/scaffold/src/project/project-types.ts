import {
	type DescExtension,
	type DescField,
	type DescFile,
	type DescMessage,
	type FileRegistry,
	getOption,
	hasOption,
	isMessage,
	type JsonObject,
	toJson,
} from "@bufbuild/protobuf";
import { suggestion } from "../names/suggestion.ts";
import { ScaffoldError } from "../scaffold-error.ts";
import type { Protos } from "./read-protos.ts";

/** The scopes of types, from the widest to the narrowest. */
export const scopes = ["cluster", "partition", "namespace"] as const;

/** One of the scopes. */
export type Scope = (typeof scopes)[number];

/** A field of a type that is a reference. */
export interface ReferenceField {
	readonly field: DescField;
	/** The family of its targets: group and kind, as in `iot.Project`. */
	readonly family: string;
}

/** A resource type in the protos of a project. */
export interface KnownType {
	/** As in `iot.v1.Project`. */
	readonly key: string;
	/** As in `iot.Project`. */
	readonly family: string;
	readonly kind: string;
	readonly scope: Scope;
	readonly message: DescMessage;
	/** Whether the project's own protos define it. */
	readonly isOwn: boolean;
	/** The fields of its message that are references; not those of nested messages or of oneofs. */
	readonly references: readonly ReferenceField[];
	/** Whether its message has validation rules. */
	readonly hasRules: boolean;
}

/** What the protos of a project define. */
export interface ProjectTypes {
	readonly types: readonly KnownType[];
	/** The project's own files. */
	readonly files: readonly DescFile[];
	/** The groups of types of other services that the project's protos import. */
	readonly importedGroups: ReadonlySet<string>;
}

/** The resource types that protos define. */
export function typesOf({ registry, own }: Protos): ProjectTypes {
	const files: DescFile[] = [];
	const types: KnownType[] = [];
	const importedGroups = new Set<string>();
	for (const file of registry.files) {
		const isOwn = own.has(file.proto.name);
		if (isOwn) {
			files.push(file);
			for (const group of groupsImportedBy(file, registry)) {
				importedGroups.add(group);
			}
		}
		types.push(...file.messages.flatMap((message) => knownType(message, isOwn, registry) ?? []));
	}
	return { types, files, importedGroups };
}

/**
 * The project's own type of that name: its kind, or its full name.
 *
 * @throws ScaffoldError if there is none, or several.
 */
export function ownType(name: string, { types }: ProjectTypes): KnownType {
	const own = types.filter(({ isOwn }) => isOwn);
	const found = own.filter(({ key, kind }) => key === name || kind === name);
	const [type] = found;
	if (type === undefined) {
		const known = own.map(({ kind, key }) => (name.includes(".") ? key : kind));
		throw new ScaffoldError(`no type ${name} in the project's protos${suggestion(name, known)}`);
	}
	if (found.length > 1) {
		throw new ScaffoldError(
			`several types are named ${name}: give the full name, one of ${found.map(({ key }) => key).join(", ")}`,
		);
	}
	return type;
}

function knownType(
	message: DescMessage,
	isOwn: boolean,
	registry: FileRegistry,
): KnownType | undefined {
	const spec = optionOf(message, registry.getExtension("plinth.resource.v1.spec"));
	if (spec === undefined) {
		return undefined;
	}
	const [packageGroup, packageVersion] = message.file.proto.package.split(".").slice(-2);
	const group = text(spec, "group") || packageGroup;
	const kind = text(spec, "kind") || message.name;
	const scope = scopes.find((each) => text(spec, "scope") === `SCOPE_${each.toUpperCase()}`);
	return {
		key: `${group}.${text(spec, "groupVersion") || packageVersion}.${kind}`,
		family: `${group}.${kind}`,
		...{ kind, message, isOwn },
		scope: scope ?? "namespace",
		references: referencesOf(message, registry),
		hasRules: hasRules(message, registry),
	};
}

function referencesOf(message: DescMessage, registry: FileRegistry): readonly ReferenceField[] {
	const extension = registry.getExtension("plinth.schema.v1.reference");
	return message.fields.flatMap((field) => {
		const option = field.oneof === undefined ? optionOf(field, extension) : undefined;
		if (option === undefined) {
			return [];
		}
		const [group, , kind] = text(option, "type").split(".");
		return [{ field, family: `${group}.${kind}` }];
	});
}

/** Whether protovalidate has rules for the message or one of its fields. */
function hasRules(message: DescMessage, registry: FileRegistry): boolean {
	const onField = registry.getExtension("buf.validate.field");
	const onMessage = registry.getExtension("buf.validate.message");
	const onOneof = registry.getExtension("buf.validate.oneof");
	return (
		(onMessage !== undefined && hasOption(message, onMessage)) ||
		message.fields.some((field) => onField !== undefined && hasOption(field, onField)) ||
		message.oneofs.some((oneof) => onOneof !== undefined && hasOption(oneof, onOneof))
	);
}

function groupsImportedBy(file: DescFile, registry: FileRegistry): readonly string[] {
	const service = optionOf(file, registry.getExtension("plinth.schema.v1.service"));
	const imports = service?.imports;
	return (Array.isArray(imports) ? imports : []).flatMap((each) => {
		const groups =
			typeof each === "object" && each !== null && !Array.isArray(each) ? each.groups : [];
		return Array.isArray(groups) ? groups.filter((group) => typeof group === "string") : [];
	});
}

/** The value of an option that is a message, as JSON; `undefined` if it is not set. */
function optionOf(
	element: DescMessage | DescField | DescFile,
	extension: DescExtension | undefined,
): JsonObject | undefined {
	if (extension?.message === undefined || !hasOption(element, extension)) {
		return undefined;
	}
	const value: unknown = getOption(element, extension);
	const json = isMessage(value, extension.message) ? toJson(extension.message, value) : undefined;
	return typeof json === "object" && json !== null && !Array.isArray(json) ? json : undefined;
}

function text(option: JsonObject, key: string): string {
	const value = option[key];
	return typeof value === "string" ? value : "";
}
