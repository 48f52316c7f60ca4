import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { generatedFolders, replaceGeneratedFiles } from "./generated-files.ts";

const never = new AbortController().signal;

async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
	const folder = await temporaryFolder();
	for (const [file, text] of Object.entries(files)) {
		await mkdir(dirname(join(folder, file)), { recursive: true });
		await writeFile(join(folder, file), text);
	}
	return folder;
}

async function contentOf(folder: string): Promise<Readonly<Record<string, string>>> {
	const entries = await readdir(folder, { recursive: true, withFileTypes: true });
	const files = entries.filter((entry) => entry.isFile());
	return Object.fromEntries(
		await Promise.all(
			files.map(async ({ parentPath, name }) => {
				const path = join(parentPath, name);
				return [path.slice(folder.length + 1), await readFile(path, "utf8")] as const;
			}),
		),
	);
}

describe("the folders of buf.gen.yaml", () => {
	it("are those that plugins write to", () => {
		const template = "version: v2\nclean: true\nplugins:\n  - out: ./src/gen\n  - out: docs/api/\n";
		expect(generatedFolders(template)).toEqual({ folders: ["src/gen", "docs/api/"], clean: true });
		expect(generatedFolders("plugins: [{ out: gen }]")).toEqual({ folders: ["gen"], clean: false });
	});

	it.each([
		["", "an empty file"],
		["plugins: [", "no YAML"],
		["- a list", "a list"],
		["plugins: 3", "a number as plugins"],
		["plugins: []", "no plugin"],
		["plugins: [{ local: protoc-gen-es }]", "a plugin without a folder"],
		["plugins: [{ out: gen }, { out: . }]", "the project itself"],
		["plugins: [{ out: src/.. }]", "the project itself, written differently"],
		["plugins: [{ out: ../gen }]", "a folder outside the project"],
		["plugins: [{ out: /gen }]", "an absolute folder"],
	])("are unknown for %j: %s", (template) => {
		expect(generatedFolders(template)).toBeUndefined();
	});
});

describe("replacing generated files", () => {
	const clean = { folders: ["gen"], clean: true };

	it("touches only what is different", async () => {
		const project = await folderWith({
			"gen/same.ts": "same",
			"gen/other.ts": "before",
			"gen/removed/old.ts": "old",
			"module.ts": "own",
		});
		const { ino } = await stat(join(project, "gen/same.ts"));
		const from = await folderWith({
			"gen/same.ts": "same",
			"gen/other.ts": "after",
			"gen/added/new.ts": "new",
		});
		await replaceGeneratedFiles(from, project, clean, never);
		expect(await contentOf(project)).toEqual({
			"gen/same.ts": "same",
			"gen/other.ts": "after",
			"gen/added/new.ts": "new",
			"module.ts": "own",
		});
		expect((await stat(join(project, "gen/same.ts"))).ino).toBe(ino);
	});

	it("keeps other files unless the folder is to be clean", async () => {
		const project = await folderWith({ "gen/own.ts": "own" });
		const from = await folderWith({ "gen/new.ts": "new" });
		await replaceGeneratedFiles(from, project, { ...clean, clean: false }, never);
		expect(await contentOf(project)).toEqual({ "gen/own.ts": "own", "gen/new.ts": "new" });
	});

	it("writes archives, and folders that are not there yet", async () => {
		const project = await folderWith({ "gen.zip": "before" });
		const from = await folderWith({ "gen.zip": "after" });
		await replaceGeneratedFiles(from, project, { folders: ["gen.zip", "new"], clean: true }, never);
		expect(await contentOf(project)).toEqual({ "gen.zip": "after" });
	});

	it("ends when it is interrupted, and loses nothing", async () => {
		const project = await folderWith({ "gen/file.ts": "before" });
		const from = await folderWith({ "gen/file.ts": "after" });
		const interrupted = AbortSignal.abort(new Error("interrupted"));
		await expect(replaceGeneratedFiles(from, project, clean, interrupted)).rejects.toThrow(
			"interrupted",
		);
		expect(await contentOf(project)).toEqual({ "gen/file.ts": "before" });
	});
});
