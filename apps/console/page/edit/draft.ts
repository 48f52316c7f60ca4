import { create } from "@bufbuild/protobuf";
import type { KnownType, KnownTypes, Problem } from "@plinth/documents";
import { parseDocuments, readDocument, type WantedResource } from "@plinth/documents/yaml";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { encodeData, sameName } from "@plinth/resource";

/** A document while it is being written. */
export interface Draft {
	/** The resource that it describes; `undefined` if it has problems. */
	readonly wanted: WantedResource | undefined;
	readonly problems: readonly Problem[];
}

/** What a draft may describe. */
export interface DraftScope {
	readonly type: KnownType;
	readonly types: KnownTypes;
	readonly place: { readonly partition: string; readonly namespace: string };
	/** The resource that is edited; a draft of another one is a problem. */
	readonly edited?: Resource;
}

const start = { line: 1, column: 1 };

/** Reads a draft. Whatever the descriptors do not allow is a problem. */
export function readDraft(text: string, { type, types, place, edited }: DraftScope): Draft {
	const [source, ...others] = parseDocuments("draft", text);
	if (source === undefined || others.length > 0) {
		const message =
			source === undefined ? "describe a resource" : "describe one resource, not several";
		return { wanted: undefined, problems: [{ position: start, path: "", message }] };
	}
	const wanted = readDocument(source, { types, place });
	if (wanted === undefined) {
		return { wanted, problems: source.problems };
	}
	const problem = (path: string, message: string): Draft => ({
		wanted: undefined,
		problems: [{ position: source.positionOf(path), path, message }],
	});
	if (wanted.type.key !== type.key) {
		return problem("type", `this page is about resources of type ${type.key}`);
	}
	if (edited !== undefined && !sameName(wanted.id, edited.id)) {
		return problem(
			"name",
			"a resource can't be renamed or moved: create another one, and delete this one",
		);
	}
	return { wanted, problems: [] };
}

/** The resource to write. With one that is edited, its version is compared, and what the document omits is removed. */
export function resourceOfDraft(wanted: WantedResource, edited: Resource | undefined): Resource {
	const { type, id, metadata, owner, ownerReferences, data } = wanted;
	return create(ResourceSchema, {
		id: { ...id, uid: edited?.id?.uid ?? id.uid },
		version: edited?.version ?? "",
		metadata: { ...metadata },
		ownerReferences: [...(ownerReferences ?? [])],
		...(owner && { owner }),
		data: encodeData(type.schema, data ?? create(type.schema)),
	});
}
