import {
	type DescMessage,
	fromBinary,
	type JsonObject,
	type JsonValue,
	toJson,
} from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { type Any, AnySchema, hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import {
	type ID,
	OwnerReferenceSchema,
	type Resource,
	StatusSchema,
	TypeSchema,
} from "@plinth/proto";
import { gvkKey, typeNameOf } from "@plinth/resource";
import { documentFields } from "./document-fields.ts";
import type { KnownTypes } from "./known-types.ts";

/** A resource as a document, in the form that `apply` accepts and all commands print. */
export function documentOf(resource: Resource, types: Pick<KnownTypes, "messages">): JsonObject {
	const { id, owner, ownerReferences, metadata, status } = resource;
	const data = resource.data && dataOf(resource.data, types);
	const fields = withoutEmpty({
		...nameOf(id),
		owner: owner && nameOf(owner),
		owner_references: ownerReferences.map((reference) =>
			shown(OwnerReferenceSchema, toJson(OwnerReferenceSchema, reference, jsonOptions(types))),
		),
		generation: resource.generation,
		version: resource.version,
		metadata: { ...metadata },
		data,
		status: Object.fromEntries(
			Object.entries(status).map(([key, value]) => [
				key,
				shown(StatusSchema, toJson(StatusSchema, value, jsonOptions(types))),
			]),
		),
	});
	return data === undefined ? fields : inOrder({ ...fields, data });
}

function inOrder(fields: JsonObject): JsonObject {
	return Object.fromEntries(
		documentFields.flatMap((field) => {
			const value = fields[field];
			return value === undefined ? [] : [[field, value]];
		}),
	);
}

/** The parts of a document that `apply` can change. */
export function contentOf(resource: Resource, types: Pick<KnownTypes, "messages">): JsonObject {
	const { uid, generation, version, status, ...content } = documentOf(resource, types);
	return content;
}

/** The data of a resource in its JSON form. */
export interface ShownData {
	readonly json: JsonValue;
	/** Its message; `undefined` if `json` contains bytes, since the type is unknown or the data can't be decoded. */
	readonly message?: DescMessage;
	/** Why the data can't be decoded, if so. */
	readonly error?: string;
}

/**
 * The data of a resource with field names: enums by name, timestamps as text. Data of an unknown type is shown as
 * bytes. So is undecodable data, with the error.
 */
export function showData(data: Any | undefined, types: Pick<KnownTypes, "messages">): ShownData {
	if (data === undefined) {
		return { json: {} };
	}
	const desc = types.messages.getMessage(typeNameOf(data));
	if (desc === undefined) {
		return { json: bytesOf(data) };
	}
	try {
		const json = toJson(desc, fromBinary(desc, data.value), jsonOptions(types));
		return { json: shown(desc, json), message: desc };
	} catch (cause) {
		const reason = cause instanceof Error ? cause.message : String(cause);
		const error = `can't be decoded as ${desc.typeName}: ${reason}`;
		return { json: { ...bytesOf(data), error }, error };
	}
}

/** Like `showData`, but only the JSON form. */
function dataOf(data: Any, types: Pick<KnownTypes, "messages">): JsonValue {
	return showData(data, types).json;
}

function bytesOf({ typeUrl, value }: Any): JsonObject {
	return { "@type": typeUrl, bytes: base64Encode(value) };
}

function jsonOptions(types: Pick<KnownTypes, "messages">) {
	return { useProtoFieldName: true, registry: types.messages };
}

function nameOf(id: ID | undefined): JsonObject {
	return withoutEmpty({
		type: id?.type && gvkKey(id.type),
		name: id?.name,
		partition: id?.tenancy?.partition,
		namespace: id?.tenancy?.namespace,
		region: id?.region,
		uid: id?.uid,
	});
}

/** The JSON form of a message, with resource types in the form `demo.v2.Artist`. */
function shown(desc: DescMessage, json: JsonValue): JsonValue {
	if (!isObject(json) || desc.typeName === AnySchema.typeName) {
		return json;
	}
	if (desc.typeName === TypeSchema.typeName) {
		const { group, group_version, kind } = json;
		return [group, group_version, kind].every((part) => typeof part === "string" && part !== "")
			? `${group}.${group_version}.${kind}`
			: json;
	}
	if (hasCustomJsonRepresentation(desc)) {
		return json;
	}
	const result: JsonObject = {};
	for (const [key, value] of Object.entries(json)) {
		const field = desc.fields.find(({ name }) => name === key);
		result[key] = field?.message === undefined ? value : shownField(field, value);
	}
	return result;
}

function shownField(field: DescMessage["fields"][number], value: JsonValue): JsonValue {
	const { message } = field;
	if (message === undefined) {
		return value;
	}
	if (field.fieldKind === "list" && Array.isArray(value)) {
		return value.map((item) => shown(message, item));
	}
	if (field.fieldKind === "map" && isObject(value)) {
		return Object.fromEntries(
			Object.entries(value).map(([key, item]) => [key, shown(message, item)]),
		);
	}
	return shown(message, value);
}

function withoutEmpty(fields: Record<string, JsonValue | undefined>): JsonObject {
	const kept: JsonObject = {};
	for (const [key, value] of Object.entries(fields)) {
		const isEmpty =
			value === undefined ||
			value === "" ||
			(typeof value === "object" && value !== null && Object.keys(value).length === 0);
		if (!isEmpty) {
			kept[key] = value;
		}
	}
	return kept;
}

function isObject(json: JsonValue): json is JsonObject {
	return typeof json === "object" && json !== null && !Array.isArray(json);
}
