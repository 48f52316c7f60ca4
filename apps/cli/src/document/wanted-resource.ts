import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { ID, OwnerReference } from "@plinth/proto";
import type { KnownType } from "../api/known-types.ts";
import { describeProblem } from "./position.ts";
import type { SourceDocument } from "./source-document.ts";

/** What a document says that a resource is to be. What it leaves out stays as it is stored. */
export interface WantedResource {
	readonly type: KnownType;
	/** With a uid where only that incarnation is meant. */
	readonly id: ID;
	/** The content that is to be replaced, and no other. */
	readonly generation?: string;
	readonly owner?: ID;
	readonly ownerReferences?: readonly OwnerReference[];
	readonly metadata?: Readonly<Record<string, string>>;
	readonly data?: MessageShape<DescMessage>;
	readonly source: SourceDocument;
}

/** A server's message about a resource, with where in its document the path stands that it names. */
export function locate(source: SourceDocument, message: string): string {
	const named = /^resource\.([\w.[\]"-]*[\w\]])/.exec(message)?.[1] ?? "";
	const path = named.replace(/^id\.(tenancy\.)?/, "");
	return describeProblem(source.origin, {
		position: source.positionOf(path),
		path: "",
		message,
	});
}
