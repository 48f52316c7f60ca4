import type { DescMessage } from "@bufbuild/protobuf";
import { isWrapperDesc, StructSchema } from "@bufbuild/protobuf/wkt";

/**
 * Whether fields of the type may have another form than a message: a JSON object, or the value of a wrapper. By its name,
 * as the library does: modules may have their own copies of the descriptors.
 */
export function hasOwnForm(message: DescMessage): boolean {
	return isWrapperDesc(message) || message.typeName === StructSchema.typeName;
}
