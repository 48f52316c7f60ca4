import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Two packages with generated code, in a folder of its own whose parent has this project's tools. */
function project(): string {
	const folder = mkdtempSync(join(root, "node_modules/.check-generated-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	writeFileSync(join(folder, "buf.yaml"), "version: v2\nmodules: [{ path: one/proto }]\n");
	for (const name of ["one", "two"]) {
		const source = join(folder, name, "proto/shop/v1");
		mkdirSync(source, { recursive: true });
		writeFileSync(
			join(source, "shop.proto"),
			'syntax = "proto3";\npackage shop.v1;\nmessage Shop { string street = 1; }\n',
		);
		writeFileSync(
			join(folder, name, "buf.gen.yaml"),
			"version: v2\nclean: true\ninputs: [{ directory: proto }]\nplugins: [{ local: protoc-gen-es, out: src/gen, opt: [target=ts] }]\n",
		);
		expect(run("buf", ["generate"], join(folder, name)).status).toBe(0);
	}
	return folder;
}

function run(command: string, args: readonly string[], cwd: string) {
	const path = `${join(root, "node_modules/.bin")}:${process.env.PATH}`;
	return spawnSync(command, args, { cwd, encoding: "utf8", env: { ...process.env, PATH: path } });
}

function check(folder: string) {
	const { status, stderr } = run("node", ["scripts/check-generated.ts", "--root", folder], root);
	return { status, stderr };
}

const generated = "two/src/gen/shop/v1/shop_pb.ts";

it("passes where all generated code is up to date", () => {
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

it("fails where a template generates nothing", () => {
	const folder = project();
	rmSync(join(folder, "two/proto/shop"), { recursive: true });
	rmSync(join(folder, "two/src"), { recursive: true });
	expect(check(folder).status).not.toBe(0);
});

it("fails where there is nothing to check", () => {
	const folder = mkdtempSync(join(root, "node_modules/.check-generated-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	symlinkSync(join(root, "docs"), join(folder, "docs"));
	const { status, stderr } = check(folder);
	expect(status).toBe(1);
	expect(stderr).toContain("no buf.gen*.yaml");
});
