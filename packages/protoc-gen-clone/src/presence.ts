import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { Edition, FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/** The representation of an unset field that is not in a oneof. */
export type Presence =
	/** It is always set, at least to its zero value. */
	| "always"
	/** Its property is missing. */
	| "property"
	/** Its property is missing, and the prototype has one with the default value. */
	| "own-property";

/** How messages of this type represent that the field is not set. */
export function presenceOf(field: DescField): Presence {
	if (field.presence === FeatureSet_FieldPresence.IMPLICIT) {
		return "always";
	}
	return field.fieldKind !== "message" && hasPrototype(field.parent) ? "own-property" : "property";
}

/**
 * Whether messages of this type have a prototype with the default values of their fields, which protobuf-es
 * creates for scalars and enums with explicit presence outside of proto3.
 */
export function hasPrototype(message: DescMessage): boolean {
	switch (message.file.edition) {
		case Edition.EDITION_PROTO3:
			return false;
		case Edition.EDITION_PROTO2:
			return true;
		default:
			return message.fields.some(
				(field) =>
					field.presence !== FeatureSet_FieldPresence.IMPLICIT &&
					field.fieldKind !== "message" &&
					!field.oneof,
			);
	}
}
