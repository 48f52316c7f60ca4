import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { create, type DescFile, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
	CodeGeneratorRequestSchema,
	CodeGeneratorResponseSchema,
	file_google_protobuf_any,
	file_google_protobuf_timestamp,
} from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { file_torture_legacy_legacy } from "../testdata/src/gen/torture/legacy/legacy_pb.ts";
import { file_torture_v1_collisions } from "../testdata/src/gen/torture/v1/collisions_pb.ts";
import { file_torture_v1_edition_2024 } from "../testdata/src/gen/torture/v1/edition_2024_pb.ts";
import { file_torture_v1_editions } from "../testdata/src/gen/torture/v1/editions_pb.ts";
import { file_torture_v1_torture } from "../testdata/src/gen/torture/v1/torture_pb.ts";
import { protocGenClone } from "./plugin.ts";

const PARAMETER = "target=ts,import_extension=ts,elide_plugin_version=true";

const TORTURE = [
	file_torture_v1_torture,
	file_torture_v1_collisions,
	file_torture_v1_editions,
	file_torture_v1_edition_2024,
	file_torture_legacy_legacy,
];

function request(files: readonly DescFile[], parameter: string) {
	const all = new Set<DescFile>();
	function add(file: DescFile) {
		for (const dependency of file.dependencies) add(dependency);
		all.add(file);
	}
	for (const file of files) add(file);
	return create(CodeGeneratorRequestSchema, {
		parameter,
		fileToGenerate: files.map((file) => file.proto.name),
		protoFile: [...all].map((file) => file.proto),
	});
}

/** The generated files' content by name. */
function generate(files: readonly DescFile[], parameter = PARAMETER): Map<string, string> {
	const { file } = protocGenClone.run(request(files, parameter));
	return new Map(file.map(({ name, content }) => [name, content]));
}

function importsOf(content: string | undefined): string[] {
	return [...(content ?? "").matchAll(/^import .* from "(.*)";$/gm)].map((match) => match[1] ?? "");
}

describe("the plugin", () => {
	it("generates the same bytes in every run, for any grouping of files", () => {
		const together = generate(TORTURE);
		expect(generate(TORTURE)).toEqual(together);
		const apart = TORTURE.toReversed().flatMap((file) => [...generate([file])]);
		expect(new Map(apart.reverse())).toEqual(together);
	});

	it("is the program that `bin` names", () => {
		const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
		const program = new URL(`../${manifest.bin["protoc-gen-clone"]}`, import.meta.url).pathname;
		const input = toBinary(CodeGeneratorRequestSchema, request(TORTURE, PARAMETER));
		const { stdout } = spawnSync(process.execPath, [program], { input });
		const response = fromBinary(CodeGeneratorResponseSchema, stdout);
		expect(response).toEqual(protocGenClone.run(request(TORTURE, PARAMETER)));
	});

	it("generates a file next to that of protoc-gen-es, and none if there is nothing to clone", () => {
		expect([...generate(TORTURE).keys()]).toEqual([
			"torture/v1/torture_clone.ts",
			"torture/v1/collisions_clone.ts",
			"torture/v1/editions_clone.ts",
			"torture/v1/edition_2024_clone.ts",
			"torture/legacy/legacy_clone.ts",
		]);
		const enums = create(CodeGeneratorRequestSchema, {
			parameter: PARAMETER,
			fileToGenerate: ["enums.proto"],
			protoFile: [
				{
					name: "enums.proto",
					syntax: "proto3",
					enumType: [{ name: "E", value: [{ name: "E_ZERO", number: 0 }] }],
				},
			],
		});
		expect(protocGenClone.run(enums).file).toEqual([]);
	});

	it("imports only from the runtime libraries and generated files", () => {
		const allowed = /^(@bufbuild\/protobuf(\/wkt.*)?|@connectrpc\/connect|\.\/\w+_(pb|clone)\.ts)$/;
		for (const content of generate(TORTURE).values()) {
			for (const from of importsOf(content)) {
				expect(from).toMatch(allowed);
			}
		}
	});

	it("follows `rewrite_imports` for messages and cloners of other packages", () => {
		const rewritten = generate(
			[file_torture_v1_collisions],
			`${PARAMETER},rewrite_imports=./torture/v1/torture_*.js:@other/package`,
		);
		const content = rewritten.get("torture/v1/collisions_clone.ts");
		expect(importsOf(content)).toContain("@other/package/torture/v1/torture_clone.js");
		expect(importsOf(content)).toContain("./collisions_pb.ts");
	});

	it("follows `map_imports`", () => {
		const mapped = generate(
			[file_torture_v1_collisions],
			`${PARAMETER},map_imports=torture/v1/torture.proto:@other/package`,
		);
		const content = mapped.get("torture/v1/collisions_clone.ts");
		expect(importsOf(content)).toContain("@other/package/torture/v1/torture_clone.js");
	});

	it("exports the cloners of well-known types if it generates these", () => {
		const generated = generate([file_google_protobuf_any, file_google_protobuf_timestamp]);
		expect(generated.get("google/protobuf/any_clone.ts")).toContain(
			"export function cloneAny(message: Any): Any {",
		);
		expect(generated.size).toBe(2);
	});

	it("generates JavaScript that equals the TypeScript without its types", async () => {
		const generated = generate([file_google_protobuf_any], "target=js+dts");
		expect([...generated.keys()]).toEqual([
			"google/protobuf/any_clone.js",
			"google/protobuf/any_clone.d.ts",
		]);
		const javaScript = generated.get("google/protobuf/any_clone.js") ?? "";
		const { cloneAny } = await import(`data:text/javascript,${encodeURIComponent(javaScript)}`);
		const original = { $typeName: "google.protobuf.Any", typeUrl: "a", value: new Uint8Array([1]) };
		expect(cloneAny(original)).toEqual(original);
		expect(cloneAny(original).value).not.toBe(original.value);
		const declarations = generated.get("google/protobuf/any_clone.d.ts");
		expect(declarations).toContain("export declare function cloneAny(message: Any): Any;");
	});

	it("refuses an option that it does not know", () => {
		expect(() => generate(TORTURE, "cloners=fast")).toThrow('invalid option "cloners=fast"');
	});

	it("generates code that passes the linter", () => {
		// The messages of the other files have names that no linter lets pass.
		const generated = generate([file_torture_v1_editions, file_torture_legacy_legacy]);
		const folder = mkdtempSync(join(tmpdir(), "protoc-gen-clone-"));
		try {
			for (const [name, content] of generated) {
				writeFileSync(join(folder, basename(name)), content);
			}
			const root = new URL("../../..", import.meta.url).pathname;
			// A copy, since biome reads all files below a configuration.
			copyFileSync(join(root, "biome.json"), join(folder, "biome.json"));
			const names = [...generated.keys()].map((name) => basename(name));
			const { status, stderr } = spawnSync(
				join(root, "node_modules/.bin/biome"),
				["lint", "--error-on-warnings", "--vcs-enabled=false", ...names],
				{ cwd: folder, encoding: "utf8" },
			);
			expect(stderr).toContain("Checked 2 files");
			expect(status).toBe(0);
		} finally {
			rmSync(folder, { recursive: true });
		}
	});
});
