import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { ID, OwnerReference } from "@plinth/proto";
import type { KnownType } from "./known-types.ts";
import { describeProblem, type Position } from "./position.ts";
import type { SourceDocument } from "./source-document.ts";

/** The wanted state of a resource, from a document. Absent fields keep their stored values. */
export interface WantedResource {
	readonly type: KnownType;
	/** Has a uid if only that incarnation may be replaced. */
	readonly id: ID;
	/** The only generation that may be replaced, if set. */
	readonly generation?: string;
	readonly owner?: ID;
	readonly ownerReferences?: readonly OwnerReference[];
	readonly metadata?: Readonly<Record<string, string>>;
	readonly data?: MessageShape<DescMessage>;
	/**
	 * What the document omits on purpose, so that its stored values are removed: `owner`, `owner_references`, `data`, and
	 * metadata as in `metadata.finalizers`.
	 */
	readonly removed?: ReadonlySet<string>;
	/** The set of documents that it is applied with, if these form one. */
	readonly set?: string;
	readonly source: SourceDocument;
}

/** A server's message about a resource, with the position in its document of the field that it names. */
export function locate(source: SourceDocument, message: string): string {
	return describeProblem(source.origin, {
		position: positionOf(source, message),
		path: "",
		message,
	});
}

/** The position of the field that a server's message about a resource or its ID names; of the document for others. */
export function positionOf(source: SourceDocument, message: string): Position {
	const named = /^(?:resource\.|(?=id\.))([\w.[\]"-]*[\w\]])/.exec(message)?.[1] ?? "";
	return source.positionOf(named.replace(/^id\.(tenancy\.)?/, ""));
}
