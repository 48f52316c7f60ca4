import {
	create,
	createFileRegistry,
	fromBinary,
	type MessageInitShape,
	setExtension,
	toBinary,
} from "@bufbuild/protobuf";
import {
	type DescriptorProtoSchema,
	FieldDescriptorProto_Label,
	type FieldDescriptorProto_Type,
	type FieldDescriptorProtoSchema,
	FieldOptionsSchema,
	FileDescriptorProtoSchema,
	FileDescriptorSetSchema,
	file_google_protobuf_descriptor,
	file_google_protobuf_duration,
	file_google_protobuf_field_mask,
	file_google_protobuf_timestamp,
	type MessageOptions,
	MessageOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import {
	FieldRulesSchema,
	field as fieldRules,
	file_buf_validate_validate,
	MessageRulesSchema,
	message as messageRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { file_plinth_resource_v1_annotations, Scope, spec, TypeSpecSchema } from "@plinth/proto";
import { file_plinth_type_v1_table } from "@plinth/proto/gen/plinth/type/v1/table_pb.js";
import { defineType, type ResourceType, type TypeHooks } from "@plinth/resource";

/** The package of all types that exist as bytes only. */
export const livePackage = "acme.live.v1";

/** Rules on a field. */
export type Rules = MessageInitShape<typeof FieldRulesSchema>;

type FieldInit = MessageInitShape<typeof FieldDescriptorProtoSchema>;

/** An optional field, which may have rules. */
export function field(
	name: string,
	number: number,
	type: FieldDescriptorProto_Type,
	rules?: Rules,
): FieldInit {
	const options = create(FieldOptionsSchema);
	if (rules !== undefined) {
		setExtension(options, fieldRules, create(FieldRulesSchema, rules));
	}
	const label = FieldDescriptorProto_Label.OPTIONAL;
	return { name, jsonName: name, number, type, label, options };
}

/** Options of a message that is a type in namespaces, which may have rules. */
export function typeOptions(rules?: MessageInitShape<typeof MessageRulesSchema>): MessageOptions {
	const options = create(MessageOptionsSchema);
	setExtension(options, spec, create(TypeSpecSchema, { scope: Scope.NAMESPACE }));
	if (rules !== undefined) {
		setExtension(options, messageRules, create(MessageRulesSchema, rules));
	}
	return options;
}

/**
 * The type of the first message, as if a server had fetched its descriptors: no code was generated for it.
 * The messages are in `livePackage`.
 */
export function typeFromBytes(
	messages: readonly [
		MessageInitShape<typeof DescriptorProtoSchema>,
		...MessageInitShape<typeof DescriptorProtoSchema>[],
	],
	hooks: TypeHooks = {},
): ResourceType {
	const file = create(FileDescriptorProtoSchema, {
		name: "acme/live/v1/live.proto",
		package: livePackage,
		syntax: "proto3",
		dependency: [
			"buf/validate/validate.proto",
			"google/protobuf/timestamp.proto",
			"plinth/resource/v1/annotations.proto",
			"plinth/type/v1/table.proto",
		],
		messageType: [...messages],
	});
	const dependencies = [
		file_google_protobuf_descriptor,
		file_google_protobuf_duration,
		file_google_protobuf_field_mask,
		file_google_protobuf_timestamp,
		file_buf_validate_validate,
		file_plinth_resource_v1_annotations,
		file_plinth_type_v1_table,
	];
	const set = create(FileDescriptorSetSchema, {
		file: [...dependencies.map(({ proto }) => proto), file],
	});
	const bytes = toBinary(FileDescriptorSetSchema, set);
	const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
	const message = registry.getMessage(`${livePackage}.${messages[0].name}`);
	if (message === undefined) {
		throw new Error("the descriptors lack the message");
	}
	return defineType(message, hooks);
}
