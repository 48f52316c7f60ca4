import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { temporaryFolder } from "@plinth/test-support";
import { expect, it } from "vitest";
import { thirdPartyNotices } from "./third-party.ts";

/** Writes files into a folder. Returns their paths. */
async function installed(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
	const folder = await temporaryFolder();
	return Promise.all(
		Object.entries(files).map(async ([path, text]) => {
			const file = join(folder, path);
			await mkdir(dirname(file), { recursive: true });
			await writeFile(file, text);
			return file;
		}),
	);
}

function manifest(name: string): string {
	return JSON.stringify({ name, version: "1.2.3", license: "MIT" });
}

/** The notices of a bundle with those of the files that are code. */
async function noticesOf(files: Readonly<Record<string, string>>): Promise<string> {
	const paths = await installed(files);
	return thirdPartyNotices(paths.filter((path) => /\.[jt]s$/.test(path)));
}

it("contains the license of each package, and nothing about the modules of this workspace", async () => {
	const notices = await noticesOf({
		"src/own.ts": "// Copyright us\n",
		"node_modules/.store/b@1/node_modules/b/package.json": manifest("b"),
		"node_modules/.store/b@1/node_modules/b/LICENSE": "Copyright Bob\n",
		"node_modules/.store/b@1/node_modules/b/lib/b.js": "// Copyright nobody\n",
		"node_modules/@a/a/package.json": manifest("@a/a"),
		"node_modules/@a/a/license.md": "Copyright Ann\n",
		"node_modules/@a/a/a.js": "",
	});
	expect(notices).toMatch(
		/@a\/a 1\.2\.3: MIT\n\n=+\n\nCopyright Ann\n[\s\S]*b 1\.2\.3: MIT\n\n=+\n\nCopyright Bob\n$/,
	);
	expect(notices).not.toMatch(/us|nobody/);
});

it("contains the notices of modules, once each, of a package without a file", async () => {
	const notices = await noticesOf({
		"node_modules/a/package.json": manifest("a"),
		"node_modules/a/1.js": "// Copyright Ann\n//\n// All rights\n\nexport const a = 1;\n",
		"node_modules/a/2.js": "// Copyright Ann\n//\n// All rights\n// Copyright Cid\n",
		"node_modules/a/3.js": "// Copyright Ann\n//\n// All rights\nexport const b = 1;\n",
	});
	expect(notices.match(/^Copyright Ann$/gm)).toHaveLength(2);
	expect(notices.match(/^Copyright Cid$/gm)).toHaveLength(1);
	expect(notices).not.toContain("export");
});

it("refuses a package without a license, and one that is there twice", async () => {
	const files = { "node_modules/a/package.json": manifest("a"), "node_modules/a/a.js": "a();\n" };
	await expect(noticesOf(files)).rejects.toThrow("a 1.2.3: MIT is bundled, and has no license");
	await expect(
		noticesOf({
			...files,
			"node_modules/b/node_modules/a/package.json": manifest("a"),
			"node_modules/b/node_modules/a/a.js": "",
		}),
	).rejects.toThrow("a would be bundled more than once");
});
