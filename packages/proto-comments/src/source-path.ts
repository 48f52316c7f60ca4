import type {
	DescEnum,
	DescEnumValue,
	DescField,
	DescMessage,
	DescOneof,
} from "@bufbuild/protobuf";
import {
	DescriptorProtoSchema,
	EnumDescriptorProtoSchema,
	FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";

/** What has a comment in a proto. */
export type Described = DescMessage | DescField | DescOneof | DescEnum | DescEnumValue;

const inFile = FileDescriptorProtoSchema.field;
const inMessage = DescriptorProtoSchema.field;
const inEnum = EnumDescriptorProtoSchema.field;

/**
 * Where a declaration is in the descriptor of its file: the numbers of fields, each followed by a position, as in
 * `SourceCodeInfo.Location.path`.
 */
export function sourcePath(described: Described): readonly number[] {
	switch (described.kind) {
		case "message": {
			const { parent, file, proto } = described;
			return parent === undefined
				? [inFile.messageType.number, file.proto.messageType.indexOf(proto)]
				: [
						...sourcePath(parent),
						inMessage.nestedType.number,
						parent.proto.nestedType.indexOf(proto),
					];
		}
		case "enum": {
			const { parent, file, proto } = described;
			return parent === undefined
				? [inFile.enumType.number, file.proto.enumType.indexOf(proto)]
				: [...sourcePath(parent), inMessage.enumType.number, parent.proto.enumType.indexOf(proto)];
		}
		case "field": {
			const { parent, proto } = described;
			return [...sourcePath(parent), inMessage.field.number, parent.proto.field.indexOf(proto)];
		}
		case "oneof": {
			const { parent, proto } = described;
			return [
				...sourcePath(parent),
				inMessage.oneofDecl.number,
				parent.proto.oneofDecl.indexOf(proto),
			];
		}
		case "enum_value": {
			const { parent, proto } = described;
			return [...sourcePath(parent), inEnum.value.number, parent.proto.value.indexOf(proto)];
		}
	}
}

const { messageType, enumType } = inFile;
const nested = `(,${inMessage.nestedType.number},\\d+)*`;
const value = `(,${inEnum.value.number},\\d+)?`;
const member = `(,(${inMessage.field.number}|${inMessage.oneofDecl.number}),\\d+|,${inMessage.enumType.number},\\d+${value})?`;
const describedPath = new RegExp(
	`^(${messageType.number},\\d+${nested}${member}|${enumType.number},\\d+${value})$`,
);

/** Whether a path is that of a message, a field, a oneof, an enum or a value, and not that of an option or a service. */
export function isDescribed(path: readonly number[]): boolean {
	return describedPath.test(path.join());
}
