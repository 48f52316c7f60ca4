import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import {
	type CodeGeneratorRequest,
	type CodeGeneratorResponse,
	FileDescriptorProtoSchema,
	type SourceCodeInfo,
} from "@bufbuild/protobuf/wkt";
import { keptComments } from "./kept-comments.ts";

/** A descriptor in the code of `protoc-gen-es`. At the beginning of its line: comments in the code have other lines. */
const embedded = /^( *fileDesc[\w$]*\(")([A-Za-z0-9+/]+)(")/m;

/**
 * Puts the comments of protos into the descriptors of generated code.
 *
 * @param request the protos, with source information.
 * @param response what `protoc-gen-es` has generated from them. Its files are changed in place.
 * @returns the protos whose comments found no place, since the generated code has another form.
 */
export function embedComments(
	request: CodeGeneratorRequest,
	response: CodeGeneratorResponse,
): readonly string[] {
	const generated = new Set(request.fileToGenerate);
	const comments = new Map<string, SourceCodeInfo>();
	for (const file of request.protoFile) {
		const kept = generated.has(file.name) ? keptComments(file) : undefined;
		if (kept !== undefined) {
			comments.set(file.name, kept);
		}
	}
	const missing = new Set(comments.keys());
	for (const file of response.file) {
		file.content = file.content.replace(embedded, (all, before, base64: string, after) => {
			const proto = fromBinary(FileDescriptorProtoSchema, base64Decode(base64));
			const kept = comments.get(proto.name);
			if (kept === undefined) {
				return all;
			}
			missing.delete(proto.name);
			proto.sourceCodeInfo = kept;
			const bytes = toBinary(FileDescriptorProtoSchema, proto);
			return `${before}${base64Encode(bytes, "std_raw")}${after}`;
		});
	}
	// Declarations contain no descriptors.
	return response.file.every(({ name }) => name.endsWith(".d.ts")) ? [] : [...missing];
}
