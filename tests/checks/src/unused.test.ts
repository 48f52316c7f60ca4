import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { projectWith, root, run } from "./project.fixture.ts";

/** What knip reports under the configuration of this repository. */
function unused(files: Readonly<Record<string, string>>) {
	const folder = projectWith({
		"knip.jsonc": readFileSync(join(root, "knip.jsonc"), "utf8"),
		"package.json": JSON.stringify({ name: "root", private: true }),
		"pnpm-workspace.yaml": "packages: [packages/*]\n",
		"packages/a/package.json": JSON.stringify({
			name: "@plinth/a",
			exports: { ".": "./src/index.ts" },
			dependencies: { ulid: "1" },
		}),
		"packages/a/src/index.ts":
			'import { ulid } from "ulid";\nimport type { Used } from "./used.ts";\nexport const a = (): Used => ulid();\n',
		"packages/a/src/used.ts": "export type Used = string;\n",
		...files,
	});
	const { status, stdout } = run("knip", ["--no-progress", "--no-config-hints"], folder);
	return { status, stdout };
}

it("passes if everything is used", () => {
	expect(unused({})).toEqual({ status: 0, stdout: "" });
});

it.each([
	[
		"file",
		{ "packages/a/src/orphan.ts": "export const b = 1;\n" },
		/Unused files[\s\S]*orphan\.ts/,
	],
	[
		"export",
		{ "packages/a/src/used.ts": "export type Used = string;\nexport const useless = 1;\n" },
		/Unused exports[\s\S]*useless/,
	],
	[
		"exported type",
		{ "packages/a/src/used.ts": "export type Used = string;\nexport type Useless = 1;\n" },
		/Unused exported types[\s\S]*Useless/,
	],
	[
		"dependency",
		{
			"packages/a/src/index.ts":
				'import type { Used } from "./used.ts";\nexport const a: Used = "";\n',
		},
		/Unused dependencies[\s\S]*ulid/,
	],
])("fails on an unused %s", (_, files, report) => {
	const { status, stdout } = unused(files);
	expect(stdout).toMatch(report);
	expect(status).toBe(1);
});
