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
	FieldDescriptorProto_Type,
	type FieldDescriptorProtoSchema,
	FieldOptionsSchema,
	FileDescriptorProtoSchema,
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
import {
	file_plinth_type_v1_table,
	TableSchema,
	table,
} from "@plinth/proto/gen/plinth/type/v1/table_pb.js";
import { defineType, type ResourceType } from "@plinth/resource";

const { STRING, INT32, MESSAGE } = FieldDescriptorProto_Type;
const { OPTIONAL, REPEATED } = FieldDescriptorProto_Label;

type FieldProto = MessageInitShape<typeof FieldDescriptorProtoSchema>;
type Rules = MessageInitShape<typeof FieldRulesSchema>;

/** What differs between the types of a test. */
export interface LiveTypeInit {
	/** Rules on the message. */
	readonly message?: MessageInitShape<typeof MessageRulesSchema>;
	/** Rules on fields: `text` (string), `count` (int32), `words` (repeated), `labels` (map), `part.note`. */
	readonly text?: Rules;
	readonly count?: Rules;
	readonly words?: Rules;
	readonly labels?: Rules;
	readonly note?: Rules;
	/** Paths of table columns. */
	readonly columns?: readonly string[];
	readonly name?: string;
}

/**
 * A type that exists as bytes only:
 *
 *   message Thing {
 *     string text = 1;
 *     int32 count = 2;
 *     repeated string words = 3;
 *     map<string, string> labels = 4;
 *     Part part = 5;
 *     repeated Part parts = 6;
 *     google.protobuf.Timestamp at = 7;
 *   }
 *   message Part { string note = 1; Thing of = 2; }
 */
export function liveType(init: LiveTypeInit = {}): ResourceType {
	const name = init.name ?? "Thing";
	const options = create(MessageOptionsSchema);
	setExtension(options, spec, create(TypeSpecSchema, { scope: Scope.NAMESPACE }));
	if (init.message !== undefined) {
		setExtension(options, messageRules, create(MessageRulesSchema, init.message));
	}
	if (init.columns !== undefined) {
		const columns = init.columns.map((path) => ({ path }));
		setExtension(options, table, create(TableSchema, { columns }));
	}
	const part = ".acme.live.v1.Part";
	const messages: MessageInitShape<typeof DescriptorProtoSchema>[] = [
		{
			name,
			options,
			field: [
				field("text", 1, STRING, init.text),
				field("count", 2, INT32, init.count),
				{ ...field("words", 3, STRING, init.words), label: REPEATED },
				{
					...field("labels", 4, MESSAGE, init.labels),
					label: REPEATED,
					typeName: `.acme.live.v1.${name}.LabelsEntry`,
				},
				{ ...field("part", 5, MESSAGE), typeName: part },
				{ ...field("parts", 6, MESSAGE), typeName: part, label: REPEATED },
				{ ...field("at", 7, MESSAGE), typeName: ".google.protobuf.Timestamp" },
			],
			nestedType: [
				{
					name: "LabelsEntry",
					options: { mapEntry: true },
					field: [field("key", 1, STRING), field("value", 2, STRING)],
				},
			],
		},
		{
			name: "Part",
			field: [
				field("note", 1, STRING, init.note),
				{ ...field("of", 2, MESSAGE), typeName: `.acme.live.v1.${name}` },
			],
		},
	];
	const dependencies = [
		file_google_protobuf_descriptor,
		file_google_protobuf_duration,
		file_google_protobuf_field_mask,
		file_google_protobuf_timestamp,
		file_buf_validate_validate,
		file_plinth_resource_v1_annotations,
		file_plinth_type_v1_table,
	];
	const file = create(FileDescriptorProtoSchema, {
		name: "acme/live/v1/live.proto",
		package: "acme.live.v1",
		syntax: "proto3",
		dependency: [
			"buf/validate/validate.proto",
			"google/protobuf/timestamp.proto",
			"plinth/resource/v1/annotations.proto",
			"plinth/type/v1/table.proto",
		],
		messageType: messages,
	});
	const set = create(FileDescriptorSetSchema, {
		file: [...dependencies.map(({ proto }) => proto), file],
	});
	const bytes = toBinary(FileDescriptorSetSchema, set);
	const message = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes)).getMessage(
		`acme.live.v1.${name}`,
	);
	if (message === undefined) {
		throw new Error("the descriptors lack the message");
	}
	return defineType(message);
}

function field(
	name: string,
	number: number,
	type: FieldDescriptorProto_Type,
	rules?: Rules,
): FieldProto {
	const options = create(FieldOptionsSchema);
	if (rules !== undefined) {
		setExtension(options, fieldRules, create(FieldRulesSchema, rules));
	}
	return { name, jsonName: name, number, type, label: OPTIONAL, options };
}
