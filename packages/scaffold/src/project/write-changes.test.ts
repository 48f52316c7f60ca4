import { chmod, mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryProject } from "./project.fixture.ts";
import { writeChanges } from "./write-changes.ts";

const files = [
	{ path: "a/new/one.txt", content: "1" },
	{ path: "b/two.txt", content: "2" },
];
const edited = { path: "src/module.ts", edit: (text: string) => `${text}// more\n` };

it("creates files and folders, and keeps the mode of the edited file", async () => {
	const project = await temporaryProject();
	await chmod(join(project.root, "src/module.ts"), 0o600);
	expect(await writeChanges(project.root, files, edited)).toEqual({ edited: true });
	expect(await project.read("a/new/one.txt")).toBe("1");
	expect((await project.read("src/module.ts")).endsWith("// more\n")).toBe(true);
	expect((await stat(join(project.root, "src/module.ts"))).mode & 0o777).toBe(0o600);
});

it("removes what it has created if a later file can't be created", async () => {
	const project = await temporaryProject({ b: "a file where a folder should be" });
	const before = await project.files();
	const module = await project.read("src/module.ts");
	await expect(writeChanges(project.root, files, edited)).rejects.toThrow(
		/^E[A-Z]+: .*: nothing was written$/,
	);
	expect(await project.files()).toEqual(before);
	expect(await project.read("src/module.ts")).toBe(module);
	await expect(stat(join(project.root, "a"))).rejects.toThrow("ENOENT");
});

it("keeps the folders that contain anything else when it removes what it has created", async () => {
	const project = await temporaryProject({ b: "a file where a folder should be" });
	await mkdir(join(project.root, "a"));
	await writeFile(join(project.root, "a/other.txt"), "");
	await expect(writeChanges(project.root, files, edited)).rejects.toThrow();
	expect(await project.files()).toContain("a/other.txt");
});

it("refuses while another caller changes the same file", async () => {
	const project = await temporaryProject({ "src/module.ts.new": "" });
	const before = await project.files();
	await expect(writeChanges(project.root, files, edited)).rejects.toThrow(
		"src/module.ts.new exists: another plinth generate is changing src/module.ts",
	);
	expect(await project.files()).toEqual(before);
});

it("creates the files although there is nothing to edit", async () => {
	const project = await temporaryProject();
	await project.remove("src/module.ts");
	expect(await writeChanges(project.root, files, edited)).toEqual({ edited: false });
	expect(await project.files()).toContain("b/two.txt");
});
