import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { manifestProblems } from "./manifest-problems.ts";

let folder: string;

beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "plinth-release-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

const good = {
	...{ name: "@plinth/a", version: "1.0.0", license: "Apache-2.0", description: "a" },
	engines: { node: ">=24" },
	dependencies: { "@plinth/b": "1.0.0", yaml: "^2.9.1" },
};

const versions = new Map([
	["@plinth/a", "1.0.0"],
	["@plinth/b", "1.0.0"],
]);

async function problemsOf(manifest: object, files: readonly string[] = ["README.md", "LICENSE"]) {
	const written = { ...Object.fromEntries(files.map((file) => [file, ""])) };
	for (const [file, text] of Object.entries({
		...written,
		"package.json": JSON.stringify(manifest),
	})) {
		const path = join(folder, "package", file);
		mkdirSync(dirname(path), { recursive: true });
		writeFileSync(path, text);
	}
	const tarball = join(folder, "a.tgz");
	execFileSync("tar", ["-czf", tarball, "-C", folder, "package"]);
	return await manifestProblems(tarball, versions);
}

it("finds nothing in a good package", async () => {
	expect(await problemsOf(good)).toEqual([]);
});

it.each([
	[{ license: undefined }, "package.json has no license"],
	[{ engines: {} }, "package.json does not say which Node.js it needs (engines)"],
	[
		{ dependencies: { "@plinth/b": "workspace:*" } },
		'package.json contains "workspace:", which only this workspace understands',
	],
	[
		{ exports: { ".": { "plinth-dist": "./a.js" } } },
		'package.json contains "plinth-dist", which only this workspace understands',
	],
	[{ dependencies: { "@plinth/b": "0.9.0" } }, "it needs @plinth/b 0.9.0, and 1.0.0 is published"],
	[{ dependencies: { "@plinth/c": "1.0.0" } }, "it needs @plinth/c, which is not published"],
])("finds %j", async (change, problem) => {
	expect(await problemsOf({ ...good, ...change })).toContain(problem);
});

it("finds files that are missing, or that only tests need", async () => {
	expect(await problemsOf(good, ["README.md", "dist/a.test.js"])).toEqual([
		"it has no LICENSE",
		"it contains dist/a.test.js, which only tests need",
	]);
});
