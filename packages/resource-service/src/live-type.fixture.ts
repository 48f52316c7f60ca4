import { create, type MessageInitShape, setExtension } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type } from "@bufbuild/protobuf/wkt";
import type { MessageRulesSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { TableSchema, table } from "@plinth/proto/gen/plinth/type/v1/table_pb.js";
import type { ResourceType } from "@plinth/resource";
import {
	field,
	livePackage,
	type Rules,
	typeFromBytes,
	typeOptions,
} from "./type-from-bytes.fixture.ts";

const { STRING, INT32, MESSAGE } = FieldDescriptorProto_Type;
const { REPEATED } = FieldDescriptorProto_Label;

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
	const options = typeOptions(init.message);
	if (init.columns !== undefined) {
		const columns = init.columns.map((path) => ({ path }));
		setExtension(options, table, create(TableSchema, { columns }));
	}
	const typeName = `.${livePackage}.${name}`;
	const part = `.${livePackage}.Part`;
	return typeFromBytes([
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
					typeName: `${typeName}.LabelsEntry`,
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
			field: [field("note", 1, STRING, init.note), { ...field("of", 2, MESSAGE), typeName }],
		},
	]);
}
