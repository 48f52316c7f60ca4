import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { pagePaths, root } from "./page.ts";

/** The pages of packages, whose code blocks are run by other tests. */
const packagePages = globSync(["{packages,apps,examples}/*/README.md", "packages/*/docs/*.md"], {
	cwd: root,
}).sort();

describe("the links of the pages", () => {
	it.each([...pagePaths, ...packagePages])(
		"of %s lead to files and headings that exist",
		(path) => {
			const targets = [...linksOf(path)].filter((target) => !/^https?:/.test(target));
			expect(targets.filter((target) => !leadsSomewhere(path, target))).toEqual([]);
		},
	);

	it.each(pagePaths)("and the paths of files that %s names exist", (path) => {
		const markdown = readFileSync(join(root, path), "utf8");
		const named = markdown.matchAll(
			/`(?<file>(?:packages|apps|examples|tests|scripts)\/[^`\s]+\.ts)`/g,
		);
		const files = [...named].map(({ groups }) => groups?.file ?? "");
		expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
	});

	it("are checked down to the heading", () => {
		expect(leadsSomewhere("docs/glossary.md", "../README.md")).toBe(true);
		expect(leadsSomewhere("docs/glossary.md", "#resources")).toBe(true);
		expect(leadsSomewhere("docs/glossary.md", "README.md")).toBe(false);
		expect(leadsSomewhere("README.md", "docs/glossary.md#no-such-heading")).toBe(false);
	});
});

/** The targets of the links and images of a page. */
function linksOf(path: string): readonly string[] {
	const markdown = readFileSync(join(root, path), "utf8");
	return [...markdown.matchAll(/\]\((?<link>[^)\s]+)\)|(?:src|srcset|href)="(?<html>[^"]+)"/g)].map(
		({ groups }) => groups?.link ?? groups?.html ?? "",
	);
}

function leadsSomewhere(from: string, target: string): boolean {
	const [file = "", heading] = target.split("#");
	const path = file === "" ? join(root, from) : join(root, dirname(from), file);
	return (
		existsSync(path) &&
		(heading === undefined || !path.endsWith(".md") || headingsOf(path).has(heading))
	);
}

/** The headings of a page, as links name them. */
function headingsOf(file: string): ReadonlySet<string> {
	const headings = readFileSync(file, "utf8").matchAll(/^#+ (?<text>.+)$/gm);
	return new Set(
		[...headings].map(({ groups }) =>
			(groups?.text ?? "")
				.toLowerCase()
				.replaceAll(/[^\p{L}\p{N} _-]/gu, "")
				.replaceAll(" ", "-"),
		),
	);
}
