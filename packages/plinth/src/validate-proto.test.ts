import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import {
	type FileDescriptorProto,
	FileDescriptorProtoSchema,
	FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { expect, it } from "vitest";

const protos = join(import.meta.dirname, "../proto");

/** The content of a file without JSON names, which only some compilers fill in. */
function contentOf(file: FileDescriptorProto): string {
	const json = toJson(FileDescriptorProtoSchema, file);
	return JSON.stringify(json, (key, value) => (key === "jsonName" ? undefined : value), "\t");
}

it("validate.proto is the one whose rules the server enforces", () => {
	const image = execFileSync("buf", ["build", protos, "--exclude-source-info", "-o", "-"]);
	const { file: files } = fromBinary(FileDescriptorSetSchema, image);
	const file = files.find(({ name }) => name === "buf/validate/validate.proto");
	const expected = contentOf(file_buf_validate_validate.proto).split("\n");
	const actual = file === undefined ? [] : contentOf(file).split("\n");
	expect(actual.find((line, at) => line !== expected[at])).toBeUndefined();
	expect(actual.length).toBe(expected.length);
});
