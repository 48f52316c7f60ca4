import type { SourceCodeInfo, SourceCodeInfo_Location } from "@bufbuild/protobuf/wkt";
import { commentText } from "./comment-text.ts";
import { type Described, sourcePath } from "./source-path.ts";

const locations = new WeakMap<SourceCodeInfo, ReadonlyMap<string, SourceCodeInfo_Location>>();

/**
 * The comment before a declaration of a proto, or else the one after it: plain text of at most `longestComment` code units,
 * whatever the descriptor contains. `undefined` if there is none, as in code of `protoc-gen-es` alone.
 */
export function commentOf(described: Described): string | undefined {
	const file = "file" in described ? described.file : described.parent.file;
	const info = file.proto.sourceCodeInfo;
	if (info === undefined) {
		return undefined;
	}
	let byPath = locations.get(info);
	if (byPath === undefined) {
		byPath = new Map(info.location.map((location) => [location.path.join(), location]));
		locations.set(info, byPath);
	}
	const location = byPath.get(sourcePath(described).join());
	const text =
		commentText(location?.leadingComments ?? "") || commentText(location?.trailingComments ?? "");
	return text === "" ? undefined : text;
}
