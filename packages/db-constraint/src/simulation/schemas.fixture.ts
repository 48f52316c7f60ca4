import {
	clearExtension,
	clone,
	create,
	createFileRegistry,
	type DescMessage,
	setExtension,
} from "@bufbuild/protobuf";
import {
	FieldDescriptorProto_Label,
	FieldDescriptorProto_Type,
	FieldDescriptorProtoSchema,
	FieldOptionsSchema,
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
	readonly descriptor: ServiceDescriptor;
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
		const foreignTypes = service === "alpha" ? [] : [Thing];
		return {
			name,
			version,
			type,
			descriptor: new ServiceDescriptor({ types: [type], foreignTypes, service }),
		};
	};
	return [
		schema("first", "v1", {}),
		schema("lenient", "v2", { needs: UNSET, likes: undefined, later: BLOCK }),
		schema("strict", "v3", { needs: CASCADE, belongs_to: undefined, later: UNSET }),
	];
}

/** The type with a field `later`, and other rules. */
function withRules(base: ResourceType, rules: Rules): ResourceType<DescMessage> {
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
	const registry = createFileRegistry(file, (name) =>
		schema.file.dependencies.find((each) => each.proto.name === name),
	);
	const changed = registry.getMessage(schema.typeName);
	if (changed === undefined) {
		throw new Error(`${schema.typeName} was not created`);
	}
	return defineType(changed);
}
