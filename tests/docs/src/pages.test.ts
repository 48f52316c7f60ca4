import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { itWith, type Tool } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { Checkout } from "./checkout.ts";
import { exceptionFor, exceptions } from "./exceptions.ts";
import { freePorts } from "./free-ports.ts";
import { pagePaths, readPage, root } from "./page.ts";
import { Terminals } from "./terminals.ts";
import { walkPage } from "./walk-page.ts";

/** Pages that continue others, which readers follow first. */
const continues: Readonly<Record<string, string>> = {
	"docs/writing-controllers.md": "docs/writing-types.md",
};

/** Commands that ran before a reader begins, by page. */
const preparations: Readonly<Record<string, string>> = {
	"docs/operating.md": "plinth-server --data-dir ./data",
};

/** The ports on which pages start their own programs. */
const pagePorts = ["9001", "9002", "9003"];

const first = new Set(Object.values(continues));
const walks = pagePaths
	.filter((path) => !first.has(path))
	.map((last) => {
		const before = continues[last];
		const pages = (before === undefined ? [last] : [before, last]).map(readPage);
		const followed = pages.flatMap(({ path, blocks }) =>
			blocks.filter((block) => !exceptionFor(path, block)),
		);
		const tools: readonly Tool[] = followed.some(({ text }) => /\bcurl\b/.test(text))
			? ["curl"]
			: [];
		return { pages, last, followed, tools };
	})
	.filter(({ followed }) => followed.length > 0);

type Walk = (typeof walks)[number];

describe.concurrent("the code blocks of the pages", () => {
	for (const walk of walks) {
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

/** Does what the pages say, in a checkout of its own. */
async function follow({ pages, last }: Walk): Promise<void> {
	const [port = 0, ...ports] = await freePorts(1 + pagePorts.length);
	const checkout = new Checkout(
		new Map([
			["127.0.0.1:7575", `127.0.0.1:${port}`],
			...pagePorts.map((shown, at): [string, string] => [shown, String(ports[at])]),
		]),
	);
	const terminals = new Terminals(checkout, port);
	try {
		const preparation = preparations[last];
		if (preparation !== undefined) {
			await terminals.start("server", `${preparation}\n`);
			await terminals.stop("server");
		}
		for (const page of pages) {
			await walkPage(page, checkout, terminals);
		}
	} finally {
		terminals.kill();
		checkout.remove();
	}
}
