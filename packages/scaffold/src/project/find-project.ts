import { access, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ScaffoldError } from "../scaffold-error.ts";
import { type Commands, npmCommands, pnpmCommands } from "./commands.ts";

/** The package that a project depends on. */
const plinth = "@plinth/plinth";

/** A project that depends on Plinth. */
export interface Project {
	/** The folder of its `package.json`. */
	readonly root: string;
	/** Its name in `package.json`; may be empty. */
	readonly name: string;
	readonly commands: Commands;
}

/**
 * The project that a folder belongs to: the nearest one, from the folder up, whose `package.json` depends on
 * `@plinth/plinth`.
 *
 * @throws ScaffoldError if there is none, or a `package.json` on the way is malformed.
 */
export async function findProject(from: string): Promise<Project> {
	for (let folder = from; ; folder = dirname(folder)) {
		const manifest = await readManifest(join(folder, "package.json"));
		if (manifest !== undefined && dependsOnPlinth(manifest)) {
			const name = "name" in manifest && typeof manifest.name === "string" ? manifest.name : "";
			return { root: folder, name, commands: await commandsOf(folder) };
		}
		if (folder === dirname(folder)) {
			throw new ScaffoldError(
				`${from} is not in a Plinth project: no package.json there or above depends on ${plinth} (npm create plinth@latest makes a project)`,
			);
		}
	}
}

async function readManifest(path: string): Promise<object | undefined> {
	let text: string;
	try {
		text = await readFile(path, "utf8");
	} catch {
		return undefined;
	}
	try {
		const parsed: unknown = JSON.parse(text);
		return typeof parsed === "object" && parsed !== null ? parsed : {};
	} catch (error) {
		const reason = error instanceof Error ? error.message : String(error);
		throw new ScaffoldError(`${path} is not JSON: ${reason}`);
	}
}

/** Those of npm, unless it is a project of pnpm. */
async function commandsOf(folder: string): Promise<Commands> {
	return await access(join(folder, "pnpm-workspace.yaml")).then(
		() => pnpmCommands,
		() => npmCommands,
	);
}

function dependsOnPlinth(manifest: object): boolean {
	return Object.entries(manifest).some(
		([key, value]) =>
			/^(dev|peer|optional)?dependencies$/i.test(key) &&
			typeof value === "object" &&
			value !== null &&
			Object.hasOwn(value, plinth),
	);
}
