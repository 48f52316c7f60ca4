import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import { CodeGeneratorRequestSchema, CodeGeneratorResponseSchema } from "@bufbuild/protobuf/wkt";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { embedComments } from "./embed-comments.ts";

const run = promisify(execFile);

const program = fileURLToPath(new URL("protoc-gen-es-comments.ts", import.meta.url));

/** Generates code from a proto, with this program and with `protoc-gen-es`. */
async function generate(proto: string, options: string) {
	const folder = await temporaryFolder();
	await writeFile(join(folder, "some.proto"), proto);
	const outputs = [`{ local: "${program}", out: commented, opt: "${options}" }`];
	outputs.push(`{ local: protoc-gen-es, out: plain, opt: "${options}" }`);
	await writeFile(join(folder, "buf.gen.yaml"), `version: v2\nplugins: [${outputs.join()}]\n`);
	await run("buf", ["generate"], { cwd: folder });
	return (name: string) =>
		Promise.all(["commented", "plain"].map((from) => readFile(join(folder, from, name), "utf8")));
}

const proto = 'syntax = "proto3";\npackage some.v1;\n// A comment.\nmessage Some {}\n';

const descriptor = /fileDesc\("(.*)"\)/;

describe("protoc-gen-es-comments", () => {
	it.each(["some_pb.ts", "some_pb.js"])("changes only the descriptor in %s", async (name) => {
		const generated = await generate(proto, `target=${name.slice(-2)}`);
		const [commented = "", plain = ""] = await generated(name);
		expect(commented.replace(descriptor, "")).toBe(plain.replace(descriptor, ""));
		const [, base64 = ""] = descriptor.exec(commented) ?? [];
		expect(Buffer.from(base64, "base64").toString()).toContain(" A comment.\n");
	});

	it("generates what protoc-gen-es does if there are no comments", async () => {
		const generated = await generate(proto.replace("// A comment.", ""), "target=js+dts");
		for (const name of ["some_pb.js", "some_pb.d.ts"]) {
			const [commented, plain] = await generated(name);
			expect(commented).toBe(plain);
		}
	});

	it("fails as protoc-gen-es does", async () => {
		await expect(generate(proto, "target=none")).rejects.toThrow("target=none");
	});

	it("names what has to be installed", async () => {
		const started = run(process.execPath, [program], { env: {} });
		started.child.stdin?.end();
		await expect(started).rejects.toThrow("Install @bufbuild/protoc-gen-es");
	});

	it("tells which code has no place for comments", () => {
		const location = [{ path: [4, 0], span: [0, 0, 1], leadingComments: " A comment.\n" }];
		const request = create(CodeGeneratorRequestSchema, {
			fileToGenerate: ["some.proto"],
			protoFile: [
				{ name: "some.proto", messageType: [{ name: "Some" }], sourceCodeInfo: { location } },
			],
		});
		const generated = (name: string) =>
			create(CodeGeneratorResponseSchema, { file: [{ name, content: "export {};\n" }] });
		const response = generated("some_pb.ts");
		expect(embedComments(request, response)).toEqual(["some.proto"]);
		expect(response.file[0]?.content).toBe("export {};\n");
		expect(embedComments(request, generated("some_pb.d.ts"))).toEqual([]);
	});
});
