import {
	clearExtension,
	clone,
	create,
	createFileRegistry,
	type DescMessage,
	fromBinary,
	setExtension,
	toBinary,
} from "@bufbuild/protobuf";
import {
	FieldDescriptorProto_Label,
	FieldDescriptorProto_Type,
	FieldDescriptorProtoSchema,
	FieldOptionsSchema,
	type FileDescriptorProto,
	FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import { ReferenceSchema } from "@plinth/proto";
import {
	OnDelete,
	reference,
	SchemaReferenceSchema,
} from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { defineType, type ResourceType } from "@plinth/resource";
import { Thing, Widget } from "../../testdata/types.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";

/** The schema that the code of a server has. */
export interface SimulatedSchema {
	/** For messages. */
	readonly name: string;
	/** The API version that a server with this code announces. */
	readonly version: string;
	readonly type: ResourceType<DescMessage>;
	/** All types of the code: one version of `type`, or several. */
	readonly types: readonly [ResourceType<DescMessage>, ...ResourceType<DescMessage>[]];
	/** The types in which users write. */
	readonly written: readonly [ResourceType<DescMessage>, ...ResourceType<DescMessage>[]];
	readonly descriptor: ServiceDescriptor;
	/** A field that has the rule CASCADE. */
	readonly cascading: "belongsTo" | "needs";
}

/** The rules of some fields; `undefined` if the field is not a reference in this schema. */
type Rules = Readonly<Record<string, OnDelete | undefined>>;

/**
 * The schemas of a service: the initial one, and those that it may be switched to. They have the same
 * fields. Only the later ones declare `later` as a reference; each changes the rule of `needs`, and drops
 * another reference.
 *
 *                  needs     belongs_to   likes    later
 *     first    v1  BLOCK     CASCADE      UNSET    -
 *     lenient  v2  UNSET     CASCADE      -        BLOCK
 *     strict   v3  CASCADE   -            UNSET    UNSET
 */
export function schemasOf(
	service: "alpha" | "beta",
): readonly [SimulatedSchema, SimulatedSchema, SimulatedSchema] {
	const { BLOCK, CASCADE, UNSET } = OnDelete;
	const schema = (name: string, version: string, rules: Rules): SimulatedSchema => {
		const type = withRules(service === "alpha" ? Thing : Widget, rules);
		const cascading = rules.needs === CASCADE ? "needs" : "belongsTo";
		return schemaWith(service, { name, version, types: [type], cascading });
	};
	return [
		schema("first", "v1", {}),
		schema("lenient", "v2", { needs: UNSET, likes: undefined, later: BLOCK }),
		schema("strict", "v3", { needs: CASCADE, belongs_to: undefined, later: UNSET }),
	];
}

function schemaWith(
	service: "alpha" | "beta",
	parts: Pick<SimulatedSchema, "name" | "version" | "types"> &
		Partial<Pick<SimulatedSchema, "written" | "cascading">>,
): SimulatedSchema {
	const { types, written = types, cascading = "belongsTo" } = parts;
	const foreignTypes = service === "alpha" ? [] : [Thing];
	const descriptor = new ServiceDescriptor({ types, foreignTypes, service });
	return { ...parts, type: types[0], written, descriptor, cascading };
}

/** The schemas of a service whose deployments have different versions. */
export interface VersionedSchemas {
	readonly v1: SimulatedSchema;
	readonly both: SimulatedSchema;
	readonly v2: SimulatedSchema;
}

/**
 * The schemas of a service whose deployments have different versions of its type, with the same rules. Widgets of a
 * version reference things of that version. Where both are served, users write things in v1 alone: so v2 can be dropped
 * again, without resources that can't be decoded.
 *
 *     v1    v1
 *     both  v1, v2
 *     v2    v2
 */
export function versionedSchemasOf(
	service: "alpha" | "beta",
	v1: SimulatedSchema,
): VersionedSchemas {
	const next = inVersion2(v1.type);
	const written: SimulatedSchema["written"] =
		service === "alpha" ? [v1.type] : [next, next, v1.type];
	const both = { name: "v1 and v2", version: "v2", types: [v1.type, next], written } as const;
	return {
		v1,
		both: schemaWith(service, both),
		v2: schemaWith(service, { name: "v2", version: "v2", types: [next] }),
	};
}

/** The type in v2, which references things in v2. */
export function inVersion2({ schema }: ResourceType<DescMessage>): ResourceType<DescMessage> {
	// Both names have the same length, so that the options, which are not known to the message, change too.
	const text = Buffer.from(toBinary(FileDescriptorProtoSchema, schema.file.proto)).toString(
		"latin1",
	);
	const changed = text.replaceAll(/(alpha|beta)([./])v1/g, "$1$2v2");
	const file = fromBinary(FileDescriptorProtoSchema, Buffer.from(changed, "latin1"));
	return typeIn(file, schema, schema.typeName.replace(".v1.", ".v2."));
}

/** The type with a field `later`, and other rules. */
export function withRules(base: ResourceType, rules: Rules): ResourceType<DescMessage> {
	const { schema } = base;
	const file = clone(FileDescriptorProtoSchema, schema.file.proto);
	const message = file.messageType.find(({ name }) => name === schema.name);
	message?.field.push(
		create(FieldDescriptorProtoSchema, {
			name: "later",
			jsonName: "later",
			number: 20,
			type: FieldDescriptorProto_Type.MESSAGE,
			typeName: `.${ReferenceSchema.typeName}`,
			label: FieldDescriptorProto_Label.OPTIONAL,
		}),
	);
	for (const field of message?.field ?? []) {
		if (field.name in rules) {
			const rule = rules[field.name];
			field.options ??= create(FieldOptionsSchema);
			if (rule === undefined) {
				clearExtension(field.options, reference);
			} else {
				const option = create(SchemaReferenceSchema, { type: "alpha.v1.Thing", onDelete: rule });
				setExtension(field.options, reference, option);
			}
		}
	}
	return typeIn(file, schema, schema.typeName);
}

/** The type with other names or numbers of some fields. Stored data stays valid if only names change. */
export function withFields(
	{ schema }: ResourceType<DescMessage>,
	changes: Readonly<Record<string, { readonly name?: string; readonly number?: number }>>,
): ResourceType<DescMessage> {
	const file = clone(FileDescriptorProtoSchema, schema.file.proto);
	const message = file.messageType.find(({ name }) => name === schema.name);
	const fields = Object.entries(changes).map(([name, change]) => {
		const field = message?.field.find((each) => each.name === name);
		if (field === undefined) {
			throw new Error(`${schema.typeName} has no field ${name}`);
		}
		return { field, change };
	});
	for (const { field, change } of fields) {
		const { name = field.name, number = field.number } = change;
		Object.assign(field, { name, jsonName: name, number });
	}
	return typeIn(file, schema, schema.typeName);
}

function typeIn(
	file: FileDescriptorProto,
	before: DescMessage,
	typeName: string,
): ResourceType<DescMessage> {
	const registry = createFileRegistry(file, (name) =>
		before.file.dependencies.find((each) => each.proto.name === name),
	);
	const created = registry.getMessage(typeName);
	if (created === undefined) {
		throw new Error(`${typeName} was not created`);
	}
	return defineType(created);
}
