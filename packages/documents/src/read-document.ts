import { create, fromJson } from "@bufbuild/protobuf";
import { type ID, IDSchema, type OwnerReference, OwnerReferenceSchema } from "@plinth/proto";
import { hasNamespace, hasPartition, scopeName } from "@plinth/resource";
import { isScalar, isSeq, type Node } from "yaml";
import { documentFields, namingFields } from "./document-fields.ts";
import { idAt, type KnownType, type KnownTypes, type Place } from "./known-types.ts";
import { explainManifest } from "./kubernetes-manifest.ts";
import { nestedTooDeeply } from "./nesting.ts";
import { fieldPath } from "./position.ts";
import { MessageReader } from "./read-message.ts";
import { describeNode, type Entry, nodeOf, type SourceDocument } from "./source-document.ts";
import { suggestion } from "./suggest.ts";
import { UnknownTypeError } from "./unknown-type-error.ts";
import type { WantedResource } from "./wanted-resource.ts";

/** Options for reading documents. */
export interface ReadOptions {
	readonly types: KnownTypes;
	/** The default tenancy of resources. */
	readonly place: Place;
}

/** The resource in a document, or `undefined` if it has `problems`. */
export function readDocument(
	source: SourceDocument,
	options: ReadOptions,
): WantedResource | undefined {
	if (source.problems.length > 0) {
		return undefined;
	}
	try {
		return new DocumentReader(source, options).read();
	} catch (error) {
		const problem = nestedTooDeeply(error);
		if (problem === undefined) {
			throw error;
		}
		source.report(source.root, "", problem);
		return undefined;
	}
}

type Fields = ReadonlyMap<string, Entry>;

class DocumentReader {
	readonly #source: SourceDocument;
	readonly #options: ReadOptions;
	readonly #messages: MessageReader;

	constructor(source: SourceDocument, options: ReadOptions) {
		this.#source = source;
		this.#options = options;
		this.#messages = new MessageReader(source, options.types);
	}

	read(): WantedResource | undefined {
		const manifest = explainManifest(this.#source, this.#options.types);
		if (manifest !== undefined) {
			this.#source.report(this.#source.root, "", manifest);
			return undefined;
		}
		const root = this.#source.enter("", this.#source.root);
		const fields = this.#fields(root, "", documentFields);
		if (fields === undefined) {
			return undefined;
		}
		const named = this.#readName(fields, root, "");
		const type = named?.type ?? this.#typeOf(fields);
		const owner = this.#readOwner(fields);
		const ownerReferences = this.#readOwnerReferences(fields);
		const metadata = this.#readMetadata(fields);
		const data = type && this.#readData(fields, type);
		const generation = this.#text(fields, "generation", "");
		const region = this.#text(fields, "region", "");
		if (region) {
			const why = `this is a copy of a resource of the region ${region}, and copies are read-only: write it in that region, without region, uid and generation`;
			this.#report(fields, "region", "", why);
		}
		if (named === undefined || this.#source.problems.length > 0) {
			return undefined;
		}
		return {
			...named,
			source: this.#source,
			...(owner && { owner }),
			...(ownerReferences && { ownerReferences }),
			...(metadata && { metadata }),
			...(data && { data }),
			...(generation && { generation }),
		};
	}

	/** The fields of a mapping by name. Unknown and repeated fields are problems. */
	#fields(node: Node | undefined, path: string, known: readonly string[]): Fields | undefined {
		const what =
			path === "" ? "a resource: type, name, data" : `a mapping with ${known.join(", ")}`;
		const entries = this.#source.entries(node, path, what);
		for (const { key, keyNode } of entries ?? []) {
			if (!known.includes(key)) {
				const hint = suggestion(key, known);
				this.#source.report(keyNode, fieldPath(path, key), `unknown field${hint}`);
			}
		}
		return entries && new Map(entries.map((entry) => [entry.key, entry]));
	}

	/** The type and the ID of a resource or its owner, from its naming fields. */
	#readName(
		fields: Fields,
		node: Node | undefined,
		path: string,
	): { type: KnownType; id: ID } | undefined {
		const word = this.#required(fields, "type", node, path);
		const name = this.#required(fields, "name", node, path);
		const partition = this.#text(fields, "partition", path);
		const namespace = this.#text(fields, "namespace", path);
		const uid = this.#text(fields, "uid", path);
		const type = word && this.#findType(word, fields.get("type")?.value, fieldPath(path, "type"));
		if (!type || !name) {
			return undefined;
		}
		const scope = scopeName(type.scope);
		if (partition && !hasPartition(type.scope)) {
			this.#report(fields, "partition", path, `${type.key} is ${scope}-scoped: leave it out`);
		}
		if (namespace && !hasNamespace(type.scope)) {
			this.#report(fields, "namespace", path, `${type.key} is ${scope}-scoped: leave it out`);
		}
		const { place } = this.#options;
		const id = idAt(type, name, {
			partition: partition || place.partition,
			namespace: namespace || place.namespace,
		});
		return { type, id: create(IDSchema, { ...id, uid: uid ?? "" }) };
	}

	/** The type of a document without a name, so that the rest of the document can still be checked. */
	#typeOf(fields: Fields): KnownType | undefined {
		const node = fields.get("type")?.value;
		const word = isScalar(node) ? String(node.value) : "";
		return this.#options.types.all.find(({ key }) => key === word);
	}

	#findType(word: string, node: Node | undefined, path: string): KnownType | undefined {
		try {
			return this.#options.types.find(word);
		} catch (error) {
			if (!(error instanceof UnknownTypeError)) {
				throw error;
			}
			this.#source.report(node, path, error.message);
			return undefined;
		}
	}

	#readOwner(fields: Fields): ID | undefined {
		const entry = fields.get("owner");
		if (entry === undefined) {
			return undefined;
		}
		const node = this.#source.enter("owner", entry.value, entry.keyNode);
		const owner = this.#fields(node, "owner", namingFields);
		return owner && this.#readName(owner, node, "owner")?.id;
	}

	#readOwnerReferences(fields: Fields): readonly OwnerReference[] | undefined {
		const path = "owner_references";
		const entry = fields.get(path);
		if (entry === undefined) {
			return undefined;
		}
		const list = this.#source.enter(path, entry.value, entry.keyNode);
		if (!isSeq(list)) {
			this.#source.report(list, path, `expected a list, got ${describeNode(list)}`);
			return undefined;
		}
		return list.items.map((item, at) => {
			const json = this.#messages.read(OwnerReferenceSchema, nodeOf(item), `${path}[${at}]`);
			return this.#source.problems.length > 0
				? create(OwnerReferenceSchema)
				: fromJson(OwnerReferenceSchema, json);
		});
	}

	#readMetadata(fields: Fields): Record<string, string> | undefined {
		const entry = fields.get("metadata");
		if (entry === undefined) {
			return undefined;
		}
		const node = this.#source.enter("metadata", entry.value, entry.keyNode);
		const entries = this.#source.entries(node, "metadata", "a mapping") ?? [];
		return Object.fromEntries(
			entries.map(({ key, keyNode, value }) => {
				const path = `metadata[${JSON.stringify(key)}]`;
				return [key, this.#textOf(this.#source.enter(path, value, keyNode), path) ?? ""];
			}),
		);
	}

	#readData(fields: Fields, type: KnownType): WantedResource["data"] {
		const entry = fields.get("data");
		if (entry === undefined) {
			return undefined;
		}
		const json = this.#messages.read(type.schema, entry.value, "data", entry.keyNode);
		return this.#source.problems.length > 0
			? undefined
			: fromJson(type.schema, json, { registry: this.#options.types.messages });
	}

	#required(fields: Fields, field: string, node: Node | undefined, path: string) {
		if (!fields.has(field)) {
			this.#source.report(node, fieldPath(path, field), "is required");
		}
		const text = this.#text(fields, field, path);
		if (text === "") {
			this.#report(fields, field, path, "must not be empty");
		}
		return text;
	}

	#text(fields: Fields, field: string, parent: string): string | undefined {
		const entry = fields.get(field);
		if (entry === undefined) {
			return undefined;
		}
		const path = fieldPath(parent, field);
		return this.#textOf(this.#source.enter(path, entry.value, entry.keyNode), path);
	}

	#textOf(node: Node | undefined, path: string): string | undefined {
		if (isScalar(node) && typeof node.value === "string") {
			return node.value;
		}
		const hint = isScalar(node) && node.value !== null ? ": put it in quotes" : "";
		this.#source.report(node, path, `expected string, got ${describeNode(node)}${hint}`);
		return undefined;
	}

	#report(fields: Fields, field: string, parent: string, message: string): void {
		this.#source.report(fields.get(field)?.value, fieldPath(parent, field), message);
	}
}
