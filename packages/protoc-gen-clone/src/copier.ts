import { type DescField, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { ImportSymbol } from "@bufbuild/protoplugin";
import type { FileScope } from "./file-scope.ts";

/**
 * The function that copies a value of the field: an item of a list, a value of a map. Strings, numbers,
 * booleans and enums are immutable and have none.
 *
 * It follows the representation of well-known types in protobuf-es: a wrapper is the scalar that it wraps,
 * but a message in a oneof; a Struct is a JsonObject, but a message in a Value.
 */
export function copierOf(scope: FileScope, field: DescField): ImportSymbol | undefined {
	if (field.message === undefined) {
		return scalarCopier(scope, field.scalar);
	}
	if (field.fieldKind === "message" && !field.oneof && isWrapperDesc(field.message)) {
		return scalarCopier(scope, field.message.fields[0].scalar);
	}
	if (
		field.message.typeName === StructSchema.typeName &&
		field.parent.typeName !== ValueSchema.typeName
	) {
		return scope.helper("copyJsonObject");
	}
	return scope.cloner(field.message);
}

function scalarCopier(scope: FileScope, scalar: ScalarType | undefined): ImportSymbol | undefined {
	return scalar === ScalarType.BYTES ? scope.helper("copyBytes") : undefined;
}
