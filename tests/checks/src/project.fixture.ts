import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

/** The root of this repository. */
export const root = fileURLToPath(new URL("../../..", import.meta.url));

/** A folder with these files, removed after the test. */
export function projectWith(files: Readonly<Record<string, string>>): string {
	const folder = mkdtempSync(join(tmpdir(), "plinth-checks-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	writeFiles(folder, files);
	return folder;
}

/** Writes files below a folder. */
export function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
	for (const [path, content] of Object.entries(files)) {
		mkdirSync(dirname(join(folder, path)), { recursive: true });
		writeFileSync(join(folder, path), content);
	}
}

export function run(command: string, args: readonly string[], cwd: string) {
	const path = `${join(root, "node_modules/.bin")}:${process.env.PATH}`;
	return spawnSync(command, args, { cwd, encoding: "utf8", env: { ...process.env, PATH: path } });
}

/** Runs a script of `scripts/` on a project. */
export function check(script: string, folder: string, ...args: readonly string[]) {
	const { status, stderr } = run(
		"node",
		[join("scripts", script), "--root", folder, ...args],
		root,
	);
	return { status, stderr };
}
