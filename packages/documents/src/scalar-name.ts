import { ScalarType } from "@bufbuild/protobuf";

/** The name of a scalar type as in proto files. */
export function scalarName(scalar: ScalarType): string {
	return ScalarType[scalar].toLowerCase();
}
