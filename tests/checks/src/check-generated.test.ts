import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { check as checkProject, projectWith, root, run, writeFiles } from "./project.fixture.ts";

/** Two packages with generated code, which all tests copy. */
const original = mkdtempSync(join(tmpdir(), "plinth-generated-"));

beforeAll(() => {
	const files = {
		"buf.yaml": "version: v2\nmodules: [{ path: proto }]\n",
		"proto/shop/v1/shop.proto":
			'syntax = "proto3";\npackage shop.v1;\nmessage Shop { string street = 1; }\n',
		"buf.gen.yaml":
			"version: v2\nclean: true\ninputs: [{ directory: proto }]\nplugins: [{ local: protoc-gen-es, out: src/gen, opt: [target=ts] }]\n",
	};
	const one = join(original, "one");
	writeFiles(one, files);
	expect(run("buf", ["generate"], one).status).toBe(0);
	rmSync(join(one, "buf.yaml"));
	cpSync(one, join(original, "two"), { recursive: true });
	writeFiles(original, { "buf.yaml": "version: v2\nmodules: [{ path: one/proto }]\n" });
});
afterAll(() => rmSync(original, { recursive: true }));

/** These packages, in a folder of its own whose parent has this project's tools. */
function project(): string {
	const folder = projectWith({});
	cpSync(original, folder, { recursive: true });
	return folder;
}

function check(folder: string) {
	return checkProject("check-generated.ts", folder);
}

const generated = "two/src/gen/shop/v1/shop_pb.ts";

it("passes if all generated code is up to date", () => {
	expect(check(project())).toEqual({ status: 0, stderr: "" });
});

it("fails on generated code that was changed by hand, in any package", () => {
	const folder = project();
	writeFileSync(join(folder, generated), "export {};\n");
	const { status, stderr } = check(folder);
	expect(status).toBe(1);
	expect(stderr).toContain(`${join(folder, generated)} is stale`);
	expect(stderr).not.toContain("/one/");
});

it("fails on generated code that is missing, and on what nothing generates any more", () => {
	const folder = project();
	cpSync(join(folder, generated), join(folder, "two/src/gen/left_pb.ts"));
	rmSync(join(folder, generated));
	const { status, stderr } = check(folder);
	expect(status).toBe(1);
	expect(stderr).toContain("shop_pb.ts is missing");
	expect(stderr).toContain("left_pb.ts is left over");
});

it("fails if a template generates nothing", () => {
	const folder = project();
	rmSync(join(folder, "two/proto/shop"), { recursive: true });
	rmSync(join(folder, "two/src"), { recursive: true });
	expect(check(folder).status).not.toBe(0);
});

it("fails if nothing is checked", () => {
	const folder = projectWith({});
	symlinkSync(join(root, "docs"), join(folder, "docs"));
	const { status, stderr } = check(folder);
	expect(status).toBe(1);
	expect(stderr).toContain("no buf.gen*.yaml");
});
