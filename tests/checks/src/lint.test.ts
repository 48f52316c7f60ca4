import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { projectWith, root, run } from "./project.fixture.ts";

const configuration = readFileSync(join(root, "biome.json"), "utf8");

/** The rules that files break under the configuration of this repository, by file. */
function lint(files: Readonly<Record<string, string>>): Readonly<Record<string, string[]>> {
	const folder = projectWith({ ...files, "biome.json": configuration });
	const args = ["lint", "--vcs-enabled=false", "--reporter=json", "."];
	const { stdout } = run("biome", args, folder);
	const found: { diagnostics: { category: string; location: { path: string } }[] } =
		JSON.parse(stdout);
	const broken: Record<string, string[]> = {};
	for (const { category, location } of found.diagnostics) {
		broken[location.path] = [...(broken[location.path] ?? []), category];
	}
	return broken;
}

describe("lint", () => {
	it("passes on a file that breaks no rule", () => {
		expect(lint({ "a.ts": "export const a = 1;\n" })).toEqual({});
	});

	it("fails on a cycle of imports, of values and of types, in tests too", () => {
		expect(
			lint({
				"value-a.ts": 'import { b } from "./value-b.ts";\nexport const a = () => b;\n',
				"value-b.ts": 'import { a } from "./value-a.ts";\nexport const b = () => a;\n',
				"type-a.ts": 'import type { B } from "./type-b.ts";\nexport type A = { b: B };\n',
				"type-b.ts": 'export type { C as B } from "./type-c.ts";\n',
				"type-c.test.ts": 'import type { D } from "./type-d.fixture.ts";\nexport type C = D;\n',
				"type-d.fixture.ts": 'import type { C } from "./type-c.test.ts";\nexport type D = C;\n',
				"type-c.ts": 'import type { A } from "./type-a.ts";\nexport type C = { a: A };\n',
			}),
		).toEqual(
			Object.fromEntries(
				[
					"value-a.ts",
					"value-b.ts",
					"type-a.ts",
					"type-b.ts",
					"type-c.ts",
					"type-c.test.ts",
					"type-d.fixture.ts",
				].map((file) => [file, ["lint/suspicious/noImportCycles"]]),
			),
		);
	});

	it("fails on functions that are too long or too complex", () => {
		const long = `export function long(): void {\n${"\tconsole.log();\n".repeat(61)}}\n`;
		const nested = (depth: number): string =>
			depth === 0 ? "console.log();" : `if (n > ${depth}) { ${nested(depth - 1)} }`;
		const complex = `export function complex(n: number): void {\n\t${nested(7)}\n}\n`;
		expect(
			lint({
				"long.ts": long,
				"complex.ts": complex,
				"long.test.ts": long,
				"long.fixture.ts": long,
				"complex.test.ts": complex,
				"complex.fixture.ts": complex,
			}),
		).toEqual({
			"long.ts": ["lint/complexity/noExcessiveLinesPerFunction"],
			"complex.ts": ["lint/complexity/noExcessiveCognitiveComplexity"],
			"complex.fixture.ts": ["lint/complexity/noExcessiveCognitiveComplexity"],
		});
	});
});
