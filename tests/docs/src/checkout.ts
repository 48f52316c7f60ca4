import {
	copyFileSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	realpathSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root } from "./page.ts";

/** Folders of a checkout that pages write to, or whose files are changed there. */
const ownFolders = ["", "examples", "examples/catalog", "packages", "packages/proto"];

/** Entries that are copied or left out instead of linked: those that commands of pages write to, and unused ones. */
const ownEntries = [
	"examples/catalog/catalog.yaml",
	"packages/proto/baseline.binpb",
	"data",
	".git",
];

/**
 * A temporary folder that looks like a checkout of the repository, in which pages may write. Everything
 * else is linked:
 *
 * ```
 * <temporary>/apps ─────────────▶ apps
 * <temporary>/examples/
 *     catalog/src ──────────────▶ examples/catalog/src
 *     catalog/catalog.yaml          a copy, with the ports of this checkout
 * <temporary>/databases/            a project that a page creates
 * ```
 */
export class Checkout {
	readonly folder: string;
	readonly #replacements: ReadonlyMap<string, string>;

	/** @param replacements Replaced in the text of pages: ports, which a machine has only once. */
	constructor(replacements: ReadonlyMap<string, string>) {
		this.#replacements = replacements;
		this.folder = mkdtempSync(join(tmpdir(), "plinth-docs-"));
		for (const own of ownFolders) {
			mkdirSync(join(this.folder, own), { recursive: true });
			for (const entry of readdirSync(join(root, own))) {
				const path = join(own, entry);
				if (![...ownFolders, ...ownEntries].includes(path)) {
					symlinkSync(join(root, path), join(this.folder, path));
				}
			}
		}
		const catalog = "examples/catalog/catalog.yaml";
		this.write(catalog, readFileSync(join(root, catalog), "utf8"));
		const baseline = "packages/proto/baseline.binpb";
		copyFileSync(join(root, baseline), join(this.folder, baseline));
	}

	/**
	 * Writes a file of a page.
	 *
	 * @throws Error if it would be written to the repository.
	 */
	write(path: string, text: string): void {
		const file = join(this.folder, path);
		if (!realpathSync(existingFolder(file)).startsWith(realpathSync(this.folder))) {
			throw new Error(`${path} is linked: name its folder among those that pages write into`);
		}
		mkdirSync(dirname(file), { recursive: true });
		writeFileSync(file, this.replace(text));
	}

	/** The text with the ports of this checkout. */
	replace(text: string): string {
		const shown = [...this.#replacements.keys()].map((each) => RegExp.escape(each)).join("|");
		// All at once: a port may contain the digits of another one.
		return shown === ""
			? text
			: text.replaceAll(new RegExp(shown, "g"), (each) => this.#replacements.get(each) ?? each);
	}

	remove(): void {
		rmSync(this.folder, { recursive: true, force: true });
	}
}

/** The innermost folder of a path that exists. */
function existingFolder(path: string): string {
	const folder = dirname(path);
	return existsSync(folder) ? folder : existingFolder(folder);
}
