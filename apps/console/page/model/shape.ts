import type { DescMessage } from "@bufbuild/protobuf";
import { commentOf } from "@plinth/documents";

/** What a value in JSON is: a message, or a list or map of them. */
export interface Shape {
	readonly message: DescMessage;
	readonly isMany: boolean;
}

/** A value within another one. */
export interface ShapedChild {
	/** The comment of its field. */
	readonly comment?: string | undefined;
	/** `undefined` if it has no fields with comments. */
	readonly shape?: Shape | undefined;
}

/**
 * What a child of a value is. Of a list or map, only the first child is described: the comments of the others are the
 * same.
 *
 * @param key the name of its field, its position, or its key.
 * @param at its position among the children.
 */
export function childOf(shape: Shape | undefined, key: string, at: number): ShapedChild {
	if (shape === undefined) {
		return {};
	}
	if (shape.isMany) {
		return at === 0 ? { shape: { message: shape.message, isMany: false } } : {};
	}
	const field = shape.message.fields.find(({ name }) => name === key);
	if (field === undefined) {
		return {};
	}
	const isMany = field.fieldKind === "list" || field.fieldKind === "map";
	return {
		comment: commentOf(field),
		shape: hasFields(field.message) ? { message: field.message, isMany } : undefined,
	};
}

/** Whether the JSON form of a message consists of its fields: that of Google's well-known ones does not. */
function hasFields(message: DescMessage | undefined): message is DescMessage {
	return message !== undefined && !message.typeName.startsWith("google.protobuf.");
}
