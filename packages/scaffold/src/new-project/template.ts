import { readdir, readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { type PackageManager, replacements } from "./package-manager.ts";
import { protoPackage } from "./project-name.ts";

/** The folder of this package. */
const home = fileURLToPath(new URL("../..", import.meta.url));

/** A file of a new project. */
export interface ProjectFile {
	/** Relative to the project, with slashes. */
	readonly path: string;
	readonly content: string;
}

/**
 * The files of a new project, sorted by path.
 *
 * The template is a project as it is, with the name `my-platform`, the Protobuf package `my_platform` and version 0.0.0
 * of Plinth: these three are replaced, and the commands of npm if another package manager is used. Names that begin
 * with a dot begin with an underscore there, because npm leaves some of them out of packages.
 */
export async function projectFiles(
	name: string,
	packageManager: PackageManager,
): Promise<readonly ProjectFile[]> {
	const values: Readonly<Record<string, string>> = {
		"my-platform": name,
		my_platform: protoPackage(name),
		'"@plinth/plinth": "0.0.0"': `"@plinth/plinth": "${await ownVersion()}"`,
		...replacements[packageManager],
	};
	const keys = new RegExp(Object.keys(values).map(RegExp.escape).join("|"), "g");
	const replaced = (text: string) => text.replaceAll(keys, (key) => values[key] ?? key);
	const folders = ["template", ...(packageManager === "npm" ? [] : [`template-${packageManager}`])];
	const files = await Promise.all(folders.map((folder) => filesIn(join(home, folder))));
	return files
		.flat()
		.map(({ path, content }) => ({
			path: replaced(path.replaceAll(/(?<=^|\/)_/g, ".")),
			content: replaced(content),
		}))
		.sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function filesIn(folder: string): Promise<readonly ProjectFile[]> {
	const entries = await readdir(folder, { recursive: true, withFileTypes: true });
	return await Promise.all(
		entries
			.filter((entry) => entry.isFile())
			.map((entry) => join(entry.parentPath, entry.name))
			.map(async (file) => ({
				path: relative(folder, file).replaceAll(sep, "/"),
				content: await readFile(file, "utf8"),
			})),
	);
}

/** The version of this package, which is that of all packages of a release. */
async function ownVersion(): Promise<string> {
	const manifest: { readonly version: string } = JSON.parse(
		await readFile(join(home, "package.json"), "utf8"),
	);
	return manifest.version;
}
