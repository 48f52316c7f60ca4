import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
	field as fieldRules,
	oneof as oneofRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** Why a reference in the field can't be cleared without violating its rules; `undefined` if it can. */
export function reasonNotClearable(field: DescField): string | undefined {
	if (field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED) {
		return "is required";
	}
	if (hasOption(field, fieldRules)) {
		const { required, type } = getOption(field, fieldRules);
		if (required) {
			return "is required";
		}
		if (type.case === "repeated" && type.value.minItems > 0n) {
			return `needs at least ${type.value.minItems} elements`;
		}
		if (type.case === "map" && type.value.minPairs > 0n) {
			return `needs at least ${type.value.minPairs} entries`;
		}
	}
	const { oneof } = field;
	return oneof !== undefined &&
		hasOption(oneof, oneofRules) &&
		getOption(oneof, oneofRules).required
		? `is part of ${oneof.name}, which is required`
		: undefined;
}
