import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder of the repository. */
export const root = join(import.meta.dirname, "../../..");

/** A fenced code block of a page. */
export interface Block {
	/** Its position: `docs/operating.md:15`. */
	readonly at: string;
	/** The first word after the fence, or empty. */
	readonly language: string;
	/** The second word: a terminal, a file, or a kind of content. */
	readonly about: string;
	readonly text: string;
	/** The paragraph before it. */
	readonly before: string;
}

/** A page with its code blocks, in their order. */
export interface Page {
	/** From the folder of the repository. */
	readonly path: string;
	readonly blocks: readonly Block[];
}

/** Pages beside code that has no test of its own for them. */
const pagesOfExamples = ["examples/peering/README.md"];

/** All pages whose links and code blocks are checked: those in the root folder and in `docs`, and those of examples. */
export const pagePaths: readonly string[] = globSync(["*.md", "docs/**/*.md", ...pagesOfExamples], {
	cwd: root,
}).sort();

/** Reads one of the pages. */
export function readPage(path: string): Page {
	return parsePage(path, readFileSync(join(root, path), "utf8"));
}

const fence = /^ *```(?<language>[\w+-]*)(?: (?<about>\S+))?\n(?<text>.*?)^ *```$/gms;

/** The code blocks of a page in Markdown. */
export function parsePage(path: string, markdown: string): Page {
	const blocks = [...markdown.matchAll(fence)].map(({ groups, index }) => {
		const above = markdown.slice(0, index);
		return {
			at: `${path}:${above.split("\n").length}`,
			language: groups?.language ?? "",
			about: groups?.about ?? "",
			text: groups?.text ?? "",
			before: above.trimEnd().split("\n\n").at(-1) ?? "",
		};
	});
	return { path, blocks };
}
