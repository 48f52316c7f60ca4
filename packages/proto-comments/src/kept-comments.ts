import { create } from "@bufbuild/protobuf";
import {
	type FileDescriptorProto,
	FileDescriptorProtoSchema,
	type SourceCodeInfo,
	type SourceCodeInfo_Location,
	SourceCodeInfo_LocationSchema,
	SourceCodeInfoSchema,
} from "@bufbuild/protobuf/wkt";
import { commentText, shortened } from "./comment-text.ts";
import { isDescribed } from "./source-path.ts";

/**
 * The comments of a file that `commentOf` finds, and nothing else of its source information: one for each declaration,
 * shortened to `longestComment`. Comments that stand apart, those of options and services, and those of requests and
 * responses, which no resource contains, are left out. `undefined` if none is left.
 */
export function keptComments(file: FileDescriptorProto): SourceCodeInfo | undefined {
	const exchanged = exchangedMessages(file);
	const location = (file.sourceCodeInfo?.location ?? [])
		.filter(({ path }) => isDescribed(path) && !(isMessage(path) && exchanged.has(path[1])))
		.flatMap(keptLocation);
	return location.length === 0 ? undefined : create(SourceCodeInfoSchema, { location });
}

function keptLocation({ path, span, ...comments }: SourceCodeInfo_Location) {
	const leading = comments.leadingComments ?? "";
	const trailing = comments.trailingComments ?? "";
	const kept =
		commentText(leading) !== ""
			? { leadingComments: shortened(leading) }
			: commentText(trailing) !== ""
				? { trailingComments: shortened(trailing) }
				: undefined;
	// Descriptors in other languages need the span.
	return kept === undefined ? [] : [create(SourceCodeInfo_LocationSchema, { path, span, ...kept })];
}

function isMessage([first]: readonly number[]): boolean {
	return first === FileDescriptorProtoSchema.field.messageType.number;
}

/** The positions of the messages that the services of a file receive or send. */
function exchangedMessages(file: FileDescriptorProto): ReadonlySet<number | undefined> {
	const names = new Set(
		file.service.flatMap(({ method }) =>
			method.flatMap(({ inputType, outputType }) => [inputType, outputType]),
		),
	);
	const scope = file.package === "" ? "." : `.${file.package}.`;
	return new Set(
		file.messageType.flatMap(({ name }, at) => (names.has(`${scope}${name}`) ? [at] : [])),
	);
}
