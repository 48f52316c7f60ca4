import {
	create,
	createFileRegistry,
	fromBinary,
	type MessageInitShape,
	setExtension,
	toBinary,
} from "@bufbuild/protobuf";
import {
	FieldDescriptorProto_Label,
	FieldDescriptorProto_Type,
	type FieldDescriptorProtoSchema,
	FieldOptionsSchema,
	FileDescriptorProtoSchema,
	type FileDescriptorSet,
	FileDescriptorSetSchema,
	file_google_protobuf_descriptor,
	file_google_protobuf_duration,
	file_google_protobuf_field_mask,
	file_google_protobuf_timestamp,
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
import { defineType, type ResourceType, type TypeHooks } from "@plinth/resource";

/*
 * A type that exists as bytes only, as if a server had fetched it: no code was generated for it.
 *
 *   message Gig {
 *     option (plinth.resource.v1.spec) = {scope: SCOPE_NAMESPACE};
 *     option (buf.validate.message).cel = {id: "sold", expression: "this.sold <= this.seats", …};
 *     string title = 1 [(buf.validate.field).string.min_len = 1];
 *     int32 seats = 2 [(buf.validate.field).int32.gt = 0];
 *     int32 sold = 3;
 *     repeated string tags = 4 [(buf.validate.field).repeated.items.string.max_len = 8];
 *   }
 */

const { STRING, INT32 } = FieldDescriptorProto_Type;

function gigFile(): FileDescriptorSet {
	const options = create(MessageOptionsSchema);
	setExtension(options, spec, create(TypeSpecSchema, { scope: Scope.NAMESPACE }));
	const sold = {
		id: "sold",
		message: "sold more than there is",
		expression: "this.sold <= this.seats",
	};
	setExtension(options, messageRules, create(MessageRulesSchema, { cel: [sold] }));
	const file = create(FileDescriptorProtoSchema, {
		name: "acme/live/v1/gig.proto",
		package: "acme.live.v1",
		syntax: "proto3",
		dependency: ["buf/validate/validate.proto", "plinth/resource/v1/annotations.proto"],
		messageType: [
			{
				name: "Gig",
				options,
				field: [
					field("title", 1, STRING, { type: { case: "string", value: { minLen: 1n } } }),
					field("seats", 2, INT32, {
						type: { case: "int32", value: { greaterThan: { case: "gt", value: 0 } } },
					}),
					field("sold", 3, INT32, {}),
					{
						...field("tags", 4, STRING, {
							type: {
								case: "repeated",
								value: { items: { type: { case: "string", value: { maxLen: 8n } } } },
							},
						}),
						label: FieldDescriptorProto_Label.REPEATED,
					},
				],
			},
		],
	});
	const dependencies = [
		file_google_protobuf_descriptor,
		file_google_protobuf_duration,
		file_google_protobuf_field_mask,
		file_google_protobuf_timestamp,
		file_buf_validate_validate,
		file_plinth_resource_v1_annotations,
	];
	return create(FileDescriptorSetSchema, {
		file: [...dependencies.map(({ proto }) => proto), file],
	});
}

function field(
	name: string,
	number: number,
	type: FieldDescriptorProto_Type,
	rules: MessageInitShape<typeof FieldRulesSchema>,
): MessageInitShape<typeof FieldDescriptorProtoSchema> {
	const options = create(FieldOptionsSchema);
	setExtension(options, fieldRules, create(FieldRulesSchema, rules));
	const label = FieldDescriptorProto_Label.OPTIONAL;
	return { name, jsonName: name, number, type, label, options };
}

/** `live.v1.Gig`, from bytes. */
export function gigType(hooks: TypeHooks = {}): ResourceType {
	const bytes = toBinary(FileDescriptorSetSchema, gigFile());
	const message = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes)).getMessage(
		"acme.live.v1.Gig",
	);
	if (message === undefined) {
		throw new Error("the descriptors lack the message");
	}
	return defineType(message, hooks);
}
