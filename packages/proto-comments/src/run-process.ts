import { spawn } from "node:child_process";
import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { CodeGeneratorRequestSchema, CodeGeneratorResponseSchema } from "@bufbuild/protobuf/wkt";
import { embedComments } from "./embed-comments.ts";

/**
 * Reads a request of the protobuf compiler from standard input, runs `protoc-gen-es` with it, and writes its response to
 * standard output, with the comments of the protos. Sets the exit code if that fails, and says why on standard error.
 */
export async function runProcess(): Promise<void> {
	const request = await buffer(process.stdin);
	const generated = await runGenerator(request);
	if (generated === undefined) {
		process.exitCode = 1;
		return;
	}
	const response = fromBinary(CodeGeneratorResponseSchema, generated);
	for (const name of embedComments(fromBinary(CodeGeneratorRequestSchema, request), response)) {
		console.error(
			`protoc-gen-es-comments: the code of ${name} has no comments: this version of protoc-gen-es embeds no descriptor in it, or in another form`,
		);
	}
	process.stdout.write(toBinary(CodeGeneratorResponseSchema, response));
}

/** @returns the response; `undefined` if the program has failed, which it has said itself. */
async function runGenerator(request: Uint8Array): Promise<Uint8Array | undefined> {
	const child = spawn("protoc-gen-es", { stdio: ["pipe", "pipe", "inherit"] });
	// Not if it stops before it has read all: then its exit code tells.
	child.stdin.on("error", () => {});
	child.stdin.end(request);
	try {
		const [response, [code]] = await Promise.all([buffer(child.stdout), once(child, "close")]);
		return code === 0 ? response : undefined;
	} catch (error) {
		console.error(
			`protoc-gen-es-comments: protoc-gen-es can't be run: ${error instanceof Error ? error.message : error}. Install @bufbuild/protoc-gen-es`,
		);
		return undefined;
	}
}
