import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { contentHash } from "./content-hash.ts";

/** Folders that hold no code of the project, wherever they are. */
const skipped: ReadonlySet<string> = new Set(["node_modules", ".git", ".plinth", "dist"]);

/** Whether a folder with this name holds no code of the project. */
export function isSkippedFolder(name: string): boolean {
	return skipped.has(name);
}

/** What stands for the content of a file that does not exist. */
const missing = "";

/**
 * The content of files when they were last used, to tell a change from an event: editors and generators write files
 * whose content stays the same, and events arrive late.
 */
export class KnownFiles {
	readonly #hashes = new Map<string, string>();

	/** Whether the file was used. */
	has(path: string): boolean {
		return this.#hashes.has(path);
	}

	/** The file was used with this content. Returns whether it has another one by now. */
	use(path: string, hash: string): boolean {
		this.#hashes.set(path, hash);
		return this.#update(path);
	}

	/** Looks at a file. Returns whether its content has changed, or whether it is new. */
	look(path: string): boolean {
		return this.#update(path);
	}

	/** Looks at these files, and all in these folders: what they contain now is not a change later. */
	lookAtAll(paths: readonly string[]): void {
		for (const path of paths.flatMap(filesIn)) {
			this.#update(path);
		}
	}

	#update(path: string): boolean {
		const hash = hashOf(path);
		const before = this.#hashes.get(path);
		this.#hashes.set(path, hash);
		return before !== hash;
	}
}

function hashOf(path: string): string {
	try {
		return contentHash(readFileSync(path));
	} catch {
		return missing;
	}
}

/** The file, or the files in the folder and in those below it. */
function filesIn(path: string): readonly string[] {
	try {
		return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
			const inner = join(path, entry.name);
			if (entry.isDirectory()) {
				return isSkippedFolder(entry.name) ? [] : filesIn(inner);
			}
			return [inner];
		});
	} catch {
		return [path];
	}
}
