import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { pagePaths, root } from "./page.ts";

describe("the links of the pages", () => {
	it.each(pagePaths)("of %s lead to what there is in the repository", (path) => {
		const markdown = readFileSync(join(root, path), "utf8");
		const links = [...markdown.matchAll(/\]\((?<target>[^)\s]+)\)/g)]
			.map(({ groups }) => groups?.target ?? "")
			.filter((target) => !/^(https?:|#)/.test(target));
		const broken = links.filter(
			(target) => !existsSync(join(root, dirname(path), target.replace(/#.*$/, ""))),
		);
		expect(broken).toEqual([]);
	});
});
