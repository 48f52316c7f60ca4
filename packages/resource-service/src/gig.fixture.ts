import { FieldDescriptorProto_Label, FieldDescriptorProto_Type } from "@bufbuild/protobuf/wkt";
import type { ResourceType, TypeHooks } from "@plinth/resource";
import { field, typeFromBytes, typeOptions } from "./type-from-bytes.fixture.ts";

const { STRING, INT32 } = FieldDescriptorProto_Type;

/**
 * `live.v1.Gig`, which exists as bytes only:
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
export function gigType(hooks: TypeHooks = {}): ResourceType {
	const sold = {
		id: "sold",
		message: "sold more than there is",
		expression: "this.sold <= this.seats",
	};
	const gig = {
		name: "Gig",
		options: typeOptions({ cel: [sold] }),
		field: [
			field("title", 1, STRING, { type: { case: "string", value: { minLen: 1n } } }),
			field("seats", 2, INT32, {
				type: { case: "int32", value: { greaterThan: { case: "gt", value: 0 } } },
			}),
			field("sold", 3, INT32),
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
	};
	return typeFromBytes([gig], hooks);
}
