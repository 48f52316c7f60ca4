import {
	type DescField,
	type DescMessage,
	fromJson,
	type JsonObject,
	type JsonValue,
	ScalarType,
} from "@bufbuild/protobuf";
import { AnySchema, hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { TypeSchema } from "@plinth/proto";
import { isMap, isScalar, isSeq, type Node, type Scalar } from "yaml";
import type { KnownTypes } from "./known-types.ts";
import { fieldPath } from "./position.ts";
import { scalarName } from "./scalar-name.ts";
import { describeNode, nodeOf, type SourceDocument } from "./source-document.ts";
import { suggestion } from "./suggest.ts";
import { UnknownTypeError } from "./unknown-type-error.ts";

/**
 * Reads a message in a document as JSON. Everything that does not match the message's descriptor is reported with
 * its position, and omitted.
 */
export class MessageReader {
	readonly #source: SourceDocument;
	readonly #types: KnownTypes;

	constructor(source: SourceDocument, types: KnownTypes) {
		this.#source = source;
		this.#types = types;
	}

	read(desc: DescMessage, given: Node | undefined, path: string, at = given): JsonValue {
		const node = this.#source.enter(path, given, at);
		if (desc.typeName === TypeSchema.typeName && isScalar(node)) {
			return this.#readType(node, path);
		}
		if (desc.typeName === AnySchema.typeName) {
			return this.#readAny(node, path);
		}
		if (hasCustomJsonRepresentation(desc)) {
			const value = this.#plain(node, path);
			this.#check(path, node, () => fromJson(desc, value), desc.typeName);
			return value;
		}
		return this.#readFields(desc, node, path);
	}

	#readFields(desc: DescMessage, node: Node | undefined, path: string): JsonObject {
		const json: JsonObject = {};
		const oneofs = new Map<string, string>();
		const what = `the fields of ${desc.name}`;
		for (const { key, keyNode, value } of this.#source.entries(node, path, what) ?? []) {
			const field = desc.fields.find(({ name, jsonName }) => name === key || jsonName === key);
			const at = fieldPath(path, field?.name ?? key);
			if (field === undefined) {
				const names = desc.fields.map(({ name }) => name);
				const hint = suggestion(key, names);
				this.#source.report(keyNode, at, `${desc.name} has no such field${hint}`);
				continue;
			}
			if (isScalar(value) && value.value === null && field.message === undefined) {
				continue;
			}
			if (Object.hasOwn(json, field.jsonName)) {
				this.#source.report(keyNode, at, "is set twice");
				continue;
			}
			if (field.fieldKind !== "list" && field.fieldKind !== "map" && field.oneof !== undefined) {
				const other = oneofs.get(field.oneof.name);
				if (other !== undefined) {
					this.#source.report(keyNode, at, `only one of ${other} and ${field.name} can be set`);
					continue;
				}
				oneofs.set(field.oneof.name, field.name);
			}
			const read = this.#readField(desc, field, value, at, keyNode);
			if (read !== undefined) {
				json[field.jsonName] = read;
			}
		}
		return json;
	}

	#readField(
		desc: DescMessage,
		field: DescField,
		given: Node | undefined,
		path: string,
		keyNode: Node | undefined,
	): JsonValue | undefined {
		switch (field.fieldKind) {
			case "message":
				return this.read(field.message, given, path, keyNode);
			case "list":
				return this.#readList(desc, field, this.#source.enter(path, given, keyNode), path);
			case "map":
				return this.#readMap(desc, field, this.#source.enter(path, given, keyNode), path);
			default:
				return this.#readLeaf(field, this.#source.enter(path, given, keyNode), path, (value) =>
					fromJson(desc, { [field.jsonName]: value }),
				);
		}
	}

	#readList(
		desc: DescMessage,
		field: DescField & { fieldKind: "list" },
		node: Node | undefined,
		path: string,
	): JsonValue | undefined {
		if (!isSeq(node)) {
			this.#source.report(node, path, `expected a list, got ${describeNode(node)}`);
			return undefined;
		}
		return node.items.flatMap((item, position) => {
			const at = `${path}[${position}]`;
			const given = nodeOf(item);
			const read =
				field.listKind === "message"
					? this.read(field.message, given, at)
					: this.#readLeaf(field, this.#source.enter(at, given), at, (value) =>
							fromJson(desc, { [field.jsonName]: [value] }),
						);
			return read === undefined ? [] : [read];
		});
	}

	#readMap(
		desc: DescMessage,
		field: DescField & { fieldKind: "map" },
		node: Node | undefined,
		path: string,
	): JsonValue | undefined {
		const entries = this.#source.entries(node, path, "a mapping") ?? [];
		// Any key is valid, even `__proto__`, so entries must not be assigned to an object.
		return Object.fromEntries(
			entries.flatMap(({ key, keyNode, value }) => {
				const at = `${path}[${JSON.stringify(key)}]`;
				const read =
					field.mapKind === "message"
						? this.read(field.message, value, at, keyNode)
						: this.#readLeaf(field, this.#source.enter(at, value, keyNode), at, (one) =>
								fromJson(desc, { [field.jsonName]: { [key]: one } }),
							);
				return read === undefined ? [] : [[key, read]];
			}),
		);
	}

	#readLeaf(
		field: DescField,
		node: Node | undefined,
		path: string,
		parse: (value: JsonValue) => unknown,
	): JsonValue | undefined {
		if (!isScalar(node) || node.value === null) {
			this.#source.report(node, path, `expected ${expected(field)}, got ${describeNode(node)}`);
			return undefined;
		}
		const value = this.#plain(node, path);
		return this.#check(path, node, () => parse(value), expected(field), hintOf(field, value))
			? value
			: undefined;
	}

	#check(
		path: string,
		node: Node | undefined,
		parse: () => unknown,
		what: string,
		hint = "",
	): boolean {
		try {
			parse();
			return true;
		} catch {
			this.#source.report(node, path, `expected ${what}, got ${describeNode(node)}${hint}`);
			return false;
		}
	}

	#readType(node: Node, path: string): JsonValue {
		try {
			const word = isScalar(node) ? String(node.value) : "";
			const { group, groupVersion, kind } = this.#types.find(word).type;
			return { group, groupVersion, kind };
		} catch (error) {
			if (!(error instanceof UnknownTypeError)) {
				throw error;
			}
			this.#source.report(node, path, error.message);
			return {};
		}
	}

	/** A message of any type that the server lists, named by `@type`. */
	#readAny(node: Node | undefined, path: string): JsonValue {
		const url = isMap(node) ? node.get("@type") : undefined;
		const name = typeof url === "string" ? url.slice(url.lastIndexOf("/") + 1) : "";
		const desc = this.#types.messages.getMessage(name);
		if (!isMap(node) || desc === undefined) {
			const why =
				name === "" ? "@type, the name of its message, is required" : `unknown type ${name}`;
			this.#source.report(node, path, why);
			return {};
		}
		const content = node.clone();
		content.delete("@type");
		const json = this.read(desc, nodeOf(content), path);
		const typeUrl = `type.googleapis.com/${name}`;
		return isObject(json) ? { ...json, "@type": typeUrl } : { "@type": typeUrl, value: json };
	}

	/** A node as JSON. */
	#plain(given: Node | undefined, path: string): JsonValue {
		const node = this.#source.enter(path, given);
		if (isMap(node)) {
			const entries = this.#source.entries(node, path, "a mapping") ?? [];
			return Object.fromEntries(
				entries.map(({ key, value }) => [key, this.#plain(value, fieldPath(path, key))]),
			);
		}
		if (isSeq(node)) {
			return node.items.map((item, at) => this.#plain(nodeOf(item), `${path}[${at}]`));
		}
		return isScalar(node) ? plainScalar(node) : null;
	}
}

function plainScalar({ value, source }: Scalar): JsonValue {
	switch (typeof value) {
		case "bigint":
			if (value === 0n && source?.startsWith("-")) {
				return -0;
			}
			// In JSON, 64-bit integers of any size are strings.
			return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
		case "number":
			return Number.isFinite(value) ? value : nonFinite(value);
		case "string":
		case "boolean":
			return value;
		default:
			return null;
	}
}

function nonFinite(value: number): string {
	return Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

function isObject(json: JsonValue): json is JsonObject {
	return typeof json === "object" && json !== null && !Array.isArray(json);
}

function expected(field: DescField): string {
	if (field.enum !== undefined) {
		return `a name of ${field.enum.name}`;
	}
	return field.scalar === undefined ? `${field.message?.name}` : scalarName(field.scalar);
}

function hintOf(field: DescField, value: JsonValue): string {
	if (field.enum !== undefined) {
		return suggestion(
			String(value),
			field.enum.values.map(({ name }) => name),
		);
	}
	return field.scalar === ScalarType.STRING && typeof value !== "string"
		? ": put it in quotes"
		: "";
}
