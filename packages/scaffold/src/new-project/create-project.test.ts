import {
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	rmSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createProject } from "./create-project.ts";
import { projectFiles } from "./template.ts";
import { writeNewFiles } from "./write-new-files.ts";

let parent: string;

beforeEach(() => {
	parent = mkdtempSync(join(tmpdir(), "plinth-scaffold-"));
});

afterEach(() => {
	rmSync(parent, { recursive: true });
});

const filesIn = (folder: string) =>
	readdirSync(folder, { recursive: true, withFileTypes: true })
		.filter((entry) => entry.isFile())
		.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
		.sort();

describe("a new project", () => {
	it("is the template, under its own name", async () => {
		const project = await createProject({ folder: join(parent, "apps/web-shop") });
		expect(project.name).toBe("web-shop");
		expect(project.folder).toBe(join(parent, "apps/web-shop"));
		expect(filesIn(project.folder)).toEqual(project.files);
		expect(project.files).toEqual([
			".dockerignore",
			".editorconfig",
			".gitignore",
			".vscode/extensions.json",
			".vscode/launch.json",
			".vscode/settings.json",
			"Dockerfile",
			"README.md",
			"buf.gen.yaml",
			"buf.yaml",
			"package.json",
			"proto/web_shop/v1/site.proto",
			"resources/site.yaml",
			"src/controllers/site-prober.test.ts",
			"src/controllers/site-prober.ts",
			"src/module.ts",
			"src/request-url.ts",
			"src/types/site.ts",
			"tsconfig.build.json",
			"tsconfig.json",
		]);
		const content = (path: string) => readFileSync(join(project.folder, path), "utf8");
		expect(JSON.parse(content("package.json")).name).toBe("web-shop");
		expect(content("proto/web_shop/v1/site.proto")).toContain("package web_shop.v1;");
		expect(content("src/types/site.ts")).toContain('"../gen/web_shop/v1/site_pb.ts"');
		expect(content("resources/site.yaml")).toContain("type: web_shop.v1.Site");
		for (const path of project.files) {
			expect(content(path), path).not.toMatch(/my.platform|0\.0\.0"/);
		}
	});

	it("may be created in an empty folder, and in one that has only a git repository", async () => {
		const empty = join(parent, "shop");
		mkdirSync(empty);
		const { files } = await createProject({ folder: empty });
		expect(filesIn(empty)).toEqual(files);
		const cloned = join(parent, "cloned/shop");
		mkdirSync(join(cloned, ".git"), { recursive: true });
		await createProject({ folder: cloned });
		expect(filesIn(cloned)).toEqual(files);
	});

	it("is refused in a folder with other files, which stay as they are", async () => {
		const folder = join(parent, "shop");
		mkdirSync(join(folder, "src"), { recursive: true });
		writeFileSync(join(folder, "README.md"), "mine");
		await expect(createProject({ folder })).rejects.toThrow(
			`${folder} is not empty, it contains README.md, src: choose another folder, or empty this one`,
		);
		expect(readdirSync(folder)).toEqual(["README.md", "src"]);
		for (const name of ["a", "b", "c", "d", "e"]) {
			writeFileSync(join(folder, name), "");
		}
		await expect(createProject({ folder })).rejects.toThrow("README.md, a, b, c, d and 2 more");
	});

	it("is refused at the path of a file, or below one", async () => {
		const file = join(parent, "shop");
		writeFileSync(file, "");
		for (const folder of [file, join(file, "shop")]) {
			await expect(createProject({ folder })).rejects.toThrow(
				`${folder} is a file, or is below one: choose another folder`,
			);
		}
	});

	it("is refused under a name that is not valid, before anything is read", async () => {
		await expect(createProject({ folder: join(parent, "My Shop") })).rejects.toThrow(
			"as in my-shop",
		);
		expect(readdirSync(parent)).toEqual([]);
	});

	it("is not created if that is interrupted", async () => {
		const folder = join(parent, "apps/shop");
		await expect(createProject({ folder, signal: AbortSignal.abort() })).rejects.toThrow(
			/^interrupted: nothing was created$/,
		);
		expect(readdirSync(parent)).toEqual([]);
	});

	it.each([0, 1, 7])("leaves nothing if a write fails after %i files", async (count) => {
		const folder = join(parent, "apps/shop");
		const files = (await projectFiles("shop", "npm")).slice(0, count);
		// A name that is longer than file systems accept.
		const wrong = { path: `src/${"x".repeat(300)}`, content: "" };
		await expect(
			writeNewFiles(folder, [...files, wrong], new AbortController().signal),
		).rejects.toThrow(/^ENAMETOOLONG: .*: nothing was created$/);
		expect(readdirSync(parent)).toEqual([]);
	});

	it("keeps files that were there, and overwrites none, if a write fails", async () => {
		const folder = join(parent, "shop");
		mkdirSync(join(folder, ".git"), { recursive: true });
		writeFileSync(join(folder, "buf.yaml"), "mine");
		const files = await projectFiles("shop", "npm");
		await expect(writeNewFiles(folder, files, new AbortController().signal)).rejects.toThrow(
			/^EEXIST: /,
		);
		expect(readdirSync(folder).sort()).toEqual([".git", "buf.yaml"]);
		expect(readFileSync(join(folder, "buf.yaml"), "utf8")).toBe("mine");
	});

	it("for pnpm says so in all files", async () => {
		const folder = join(parent, "shop");
		const { files } = await createProject({ folder, packageManager: "pnpm" });
		const npm = await createProject({ folder: join(parent, "other/shop") });
		expect(files.filter((path) => !npm.files.includes(path))).toEqual(["pnpm-workspace.yaml"]);
		for (const path of files) {
			const lines = readFileSync(join(folder, path), "utf8").split("\n");
			const about = lines.filter((line) => /\bnp[mx]\b/.test(line));
			expect(about, path).toEqual(
				path === "Dockerfile"
					? ["RUN npm install --global pnpm@12 && pnpm install --frozen-lockfile"]
					: [],
			);
		}
		expect(existsSync(join(folder, "pnpm-workspace.yaml"))).toBe(true);
	});
});
