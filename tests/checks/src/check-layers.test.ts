import { expect, it } from "vitest";
import { check, projectWith } from "./project.fixture.ts";

function manifest(name: string, dependencies: Readonly<Record<string, readonly string[]>> = {}) {
	const versions = Object.entries(dependencies).map(([kind, names]) => [
		kind,
		Object.fromEntries(names.map((dependency) => [dependency, "workspace:*"])),
	]);
	return JSON.stringify({ name, ...Object.fromEntries(versions) });
}

/** A workspace of three layers, with further or other files. */
function layers(files: Readonly<Record<string, string>> = {}): string {
	return projectWith({
		"package.json": manifest("root", { devDependencies: ["vitest"] }),
		"pnpm-workspace.yaml": "packages: [packages/*, tests/*]\n",
		"packages/runtime/package.json": manifest("@plinth/runtime"),
		"packages/runtime/src/index.ts": "export const clock = 1;\n",
		"packages/resource/package.json": manifest("@plinth/resource", {
			dependencies: ["@plinth/runtime", "ulid"],
			devDependencies: ["@plinth/in-process"],
		}),
		"packages/resource/src/index.ts":
			'import { readFileSync } from "node:fs";\nimport { ulid } from "ulid";\nimport { clock } from "@plinth/runtime";\nexport type { Thing } from "./thing.ts";\n',
		"packages/resource/src/index.test.ts":
			'import { it } from "vitest";\nimport { hop } from "@plinth/in-process";\n',
		"packages/in-process/package.json": manifest("@plinth/in-process"),
		"tests/all/package.json": manifest("@plinth/all-tests", {
			devDependencies: ["@plinth/resource"],
		}),
		"tests/all/src/all.test.ts": 'import { thing } from "@plinth/resource";\n',
		...files,
	});
}

function problem(files: Readonly<Record<string, string>>): string {
	const { status, stderr } = check("check-layers.ts", layers(files));
	expect(status).toBe(1);
	expect(stderr.trim().split("\n")).toHaveLength(1);
	return stderr;
}

it("passes if packages import declared packages of lower layers", () => {
	expect(check("check-layers.ts", layers())).toEqual({ status: 0, stderr: "" });
});

it.each(["dependencies", "peerDependencies", "devDependencies", "optionalDependencies"])(
	"fails on %s of a higher layer",
	(kind) => {
		expect(
			problem({
				"packages/runtime/package.json": manifest("@plinth/runtime", {
					[kind]: ["@plinth/cache"],
				}),
				"packages/cache/package.json": manifest("@plinth/cache"),
			}),
		).toContain(
			"packages/runtime/package.json: @plinth/runtime must not depend on @plinth/cache, which is in no lower layer",
		);
	},
);

it("fails on published code that imports a package of its own layer", () => {
	expect(
		problem({
			"packages/resource/package.json": manifest("@plinth/resource", {
				dependencies: ["@plinth/runtime", "ulid", "@plinth/in-process"],
			}),
		}),
	).toContain("@plinth/resource must not depend on @plinth/in-process");
});

it("fails on a peer of a dependency that the package does not offer", () => {
	const peer = {
		"packages/runtime/package.json": manifest("@plinth/runtime", { peerDependencies: ["ulid"] }),
	};
	expect(check("check-layers.ts", layers(peer))).toEqual({ status: 0, stderr: "" });
	expect(
		problem({
			...peer,
			"packages/resource/package.json": manifest("@plinth/resource", {
				dependencies: ["@plinth/runtime"],
				devDependencies: ["ulid", "@plinth/in-process"],
			}),
			"packages/resource/src/index.ts": "export const a = 1;\n",
		}),
	).toContain("packages/resource/package.json: @plinth/runtime needs the peer ulid");
});

it("fails on every kind of relative import of another package, in every kind of file", () => {
	const code = (path: string) => `
import { join } from "${path}";
import type { Thing } from "${path}";
let thing: import("${path}").Thing;
export * from "${path}";
const later = await import("${path}");
`;
	const files = ["src/index.ts", "src/index.test.ts", "bench/index.bench.ts"].map(
		(file) => `packages/runtime/${file}`,
	);
	const project = layers({
		...Object.fromEntries(files.map((file) => [file, code("../../resource/src/index.ts")])),
		"tests/all/src/all.test.ts": code("../../../packages/resource/src/index.ts"),
	});
	const { status, stderr } = check("check-layers.ts", project);
	expect(status).toBe(1);
	expect(
		stderr
			.trim()
			.split("\n")
			.filter((line) => line.includes("leaves the package"))
			.map((line) => line.split(": ")[0])
			.sort(),
	).toEqual(
		[...files, "tests/all/src/all.test.ts"]
			.flatMap((file) => [2, 3, 4, 5, 6].map((line) => `${file}:${line}`))
			.sort(),
	);
});

it("fails on an import that is not declared, and on one that is declared for development only", () => {
	expect(problem({ "packages/runtime/src/index.ts": 'import "ulid";\n' })).toContain(
		"packages/runtime/src/index.ts:1: ulid is not in the (published) dependencies of @plinth/runtime",
	);
	expect(
		problem({
			"packages/resource/src/index.ts": 'import type { Hop } from "@plinth/in-process";\n',
		}),
	).toContain("@plinth/in-process is not in the (published) dependencies");
	expect(problem({ "tests/all/src/all.test.ts": 'import "@plinth/runtime";\n' })).toContain(
		"@plinth/runtime is not in the dependencies of @plinth/all-tests",
	);
});

it("lets a package that bundles import what it has for development, but of lower layers alone", () => {
	const bundles = (...more: readonly string[]) => ({
		"packages/resource/package.json": manifest("@plinth/resource", {
			dependencies: ["@plinth/runtime"],
			devDependencies: ["ulid", "@plinth/in-process", ...more],
		}),
		"packages/resource/src/index.ts": 'import { ulid } from "ulid";\n',
	});
	expect(check("check-layers.ts", layers(bundles("rolldown")))).toEqual({ status: 0, stderr: "" });
	expect(problem(bundles())).toContain("ulid is not in the (published) dependencies");
	expect(
		problem({
			...bundles("rolldown"),
			"packages/resource/src/index.ts": 'import "@plinth/in-process";\n',
		}),
	).toContain("@plinth/resource must not depend on @plinth/in-process");
});

it("fails on packages that form a cycle", () => {
	expect(
		problem({
			"packages/in-process/package.json": manifest("@plinth/in-process", {
				devDependencies: ["@plinth/resource"],
			}),
		}),
	).toContain("packages form a cycle: @plinth/in-process → @plinth/resource → @plinth/in-process");
});

it("fails on a package without a layer, on code that cannot be parsed, and if nothing is checked", () => {
	expect(problem({ "packages/new/package.json": manifest("@plinth/new") })).toContain(
		"packages/new/package.json: @plinth/new is in no layer",
	);
	const broken = check("check-layers.ts", layers({ "packages/runtime/src/a.ts": "import {" }));
	expect(broken.status).toBe(1);
	expect(broken.stderr).toContain("packages/runtime/src/a.ts cannot be parsed");
	const empty = projectWith({
		"package.json": manifest("root"),
		"pnpm-workspace.yaml": "packages: [packages/*]\n",
	});
	expect(check("check-layers.ts", empty)).toEqual({
		status: 1,
		stderr: `no packages below ${empty}\n`,
	});
});
