import { type DescField, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { ImportSymbol } from "@bufbuild/protoplugin";
import type { FileScope } from "./file-scope.ts";

/**
 * The function that copies a value of the field: for a list one of its items, for a map one of its
 * values. Strings, numbers, booleans and enums are immutable and have none.
 *
 * It follows how protobuf-es represents well-known types in fields: a wrapper as the scalar that it
 * wraps, but in a oneof as a message; a Struct as a JsonObject, but in a Value as a message.
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
