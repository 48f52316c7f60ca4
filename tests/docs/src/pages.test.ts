import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { itWith } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { exceptionFor, exceptions } from "./exceptions.ts";
import { pagePaths, readPage, root } from "./page.ts";
import { follow, shortWalks } from "./walks.ts";

describe.concurrent("the code blocks of the pages", () => {
	for (const walk of shortWalks) {
		itWith(...walk.tools)(`of ${walk.last} are true`, () => follow(walk));
	}

	it("name scripts that exist where nothing runs them", () => {
		const names = pagePaths.flatMap((path) =>
			readPage(path)
				.blocks.filter((block) => exceptionFor(path, block) !== undefined)
				.flatMap(({ text }) => [...text.matchAll(/\bpnpm@12 (?:--dir \S+ )?(?<name>[\w:]+)/g)])
				.map(({ groups }) => groups?.name ?? ""),
		);
		const scripts = new Set(["install", "exec", ...scriptNames()]);
		expect(names.length).toBeGreaterThan(3);
		expect(names.filter((name) => !scripts.has(name))).toEqual([]);
	});

	it("are all found by the exceptions that name them", () => {
		const blocks = pagePaths.flatMap((path) =>
			readPage(path).blocks.map((block) => exceptionFor(path, block)),
		);
		expect(exceptions.filter((exception) => !blocks.includes(exception))).toEqual([]);
	});
});

/** The scripts of the root and of all packages. */
function scriptNames(): readonly string[] {
	return globSync(["package.json", "{packages,apps,examples}/*/package.json"], {
		cwd: root,
	}).flatMap((file) => {
		const manifest: { readonly scripts?: Readonly<Record<string, string>> } = JSON.parse(
			readFileSync(join(root, file), "utf8"),
		);
		return Object.keys(manifest.scripts ?? {});
	});
}
