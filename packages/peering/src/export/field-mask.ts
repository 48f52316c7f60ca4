import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import type { Resource } from "@plinth/proto";
import { DecodeError, decode, encodeData } from "@plinth/resource";

/**
 * Messages that are not stored as such in a decoded message: reading one creates another one, and removing its fields changes
 * nothing. So they can only be masked as a whole.
 */
const wholeMessages: ReadonlySet<string> = new Set([
	...["Struct", "Value", "ListValue", "DoubleValue", "FloatValue", "Int64Value", "UInt64Value"],
	...["Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue"],
]);

/**
 * Removes fields of a resource, which it modifies.
 *
 * @throws DecodeError if they can't be found, since data is malformed, or are still set: the resource must not leave then.
 */
export type FieldMask = (resource: Resource) => void;

/** A mask, or what is wrong with its paths. */
export type CompiledMask = { readonly mask: FieldMask } | { readonly problem: string };

/**
 * Compiles the paths of masked fields: see `ExportedType.masked_fields`. A path through a repeated field or a map applies to
 * all of its messages.
 */
export function compileMask(schema: DescMessage, paths: readonly string[]): CompiledMask {
	const ofData: (readonly DescField[])[] = [];
	const others: ((resource: Resource) => void)[] = [];
	for (const path of paths) {
		const [root = "", ...rest] = path.split(".");
		if (root === "data" && rest.length > 0) {
			const fields = fieldsOf(schema, rest);
			if (typeof fields === "string") {
				return { problem: `${path}: ${fields}` };
			}
			ofData.push(fields);
		} else if (root === "metadata" || root === "status") {
			const key = rest.join(".");
			others.push((resource) => {
				if (key === "") {
					resource[root] = {};
				} else {
					delete resource[root][key];
				}
			});
		} else {
			return {
				problem: `${JSON.stringify(path.slice(0, 100))} must be data. with the path of a field, metadata or status`,
			};
		}
	}
	return {
		mask(resource) {
			for (const remove of others) {
				remove(resource);
			}
			if (ofData.length > 0 && resource.data !== undefined) {
				const { data } = decode({ schema }, resource);
				for (const fields of ofData) {
					clear(reflect(schema, data), fields);
				}
				if (ofData.some((fields) => isSet(reflect(schema, data), fields))) {
					throw new DecodeError(resource.id, "a masked field is still set");
				}
				resource.data = encodeData(schema, data);
			}
		},
	};
}

/** The fields of a path, or what is wrong with it. */
function fieldsOf(schema: DescMessage, names: readonly string[]): readonly DescField[] | string {
	const fields: DescField[] = [];
	let message: DescMessage | undefined = schema;
	for (const name of names) {
		if (message === undefined) {
			return `${fields.at(-1)?.name} has no fields`;
		}
		if (isWhole(message)) {
			return `a field of ${message.typeName} can't be masked alone: mask ${fields.at(-1)?.name} as a whole`;
		}
		const field: DescField | undefined = message.fields.find((each) => each.name === name);
		if (field === undefined) {
			return `${message.typeName} has no field ${JSON.stringify(name.slice(0, 100))}`;
		}
		fields.push(field);
		message = field.message;
	}
	return fields;
}

function isWhole({ typeName }: DescMessage): boolean {
	const prefix = "google.protobuf.";
	return typeName.startsWith(prefix) && wholeMessages.has(typeName.slice(prefix.length));
}

function clear(message: ReflectMessage, [field, ...rest]: readonly DescField[]): void {
	if (field === undefined || !message.isSet(field)) {
		return;
	}
	if (rest.length === 0) {
		message.clear(field);
		return;
	}
	for (const each of messagesOf(message, field)) {
		clear(each, rest);
	}
}

/** Whether a field of the path is set anywhere. */
function isSet(message: ReflectMessage, [field, ...rest]: readonly DescField[]): boolean {
	if (field === undefined || !message.isSet(field)) {
		return false;
	}
	return rest.length === 0 || messagesOf(message, field).some((each) => isSet(each, rest));
}

/** The messages of a field: one, or those of a repeated field or a map. */
function messagesOf(message: ReflectMessage, field: DescField): readonly ReflectMessage[] {
	if (field.fieldKind === "message") {
		return [message.get(field)];
	}
	if (field.fieldKind === "list" && field.listKind === "message") {
		return [...message.get(field)] as ReflectMessage[];
	}
	if (field.fieldKind === "map" && field.mapKind === "message") {
		return [...message.get(field).values()] as ReflectMessage[];
	}
	return [];
}
