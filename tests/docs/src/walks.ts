import type { Tool } from "@plinth/test-support";
import { freePorts } from "@plinth/test-support/ports";
import { Checkout } from "./checkout.ts";
import { exceptionFor } from "./exceptions.ts";
import { pagePaths, readPage } from "./page.ts";
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

/** The programs that lines of pages run and npm does not install. */
const pageTools: readonly Tool[] = ["curl", "go"];

/** The ports on which pages start their own programs. */
const pagePorts = ["9001", "9002", "9003", "7620", "7621", "7622"];

const first = new Set(Object.values(continues));
const walks = pagePaths
	.filter((path) => !first.has(path))
	.map((last) => {
		const before = continues[last];
		const pages = (before === undefined ? [last] : [before, last]).map(readPage);
		const followed = pages.flatMap(({ path, blocks }) =>
			blocks.filter((block) => !exceptionFor(path, block)),
		);
		const tools = pageTools.filter((tool) =>
			followed.some(({ text }) => new RegExp(`^ *(?:.*\\| *)?${tool} `, "m").test(text)),
		);
		return { pages, last, followed, tools };
	})
	.filter(({ followed }) => followed.length > 0);

type Walk = (typeof walks)[number];

/** Pages that build a project, or start several servers, which takes long. */
const long = new Set([
	"docs/other-languages.md",
	"docs/writing-controllers.md",
	"examples/peering/README.md",
]);

/** The walks of `test`. */
export const shortWalks = walks.filter(({ last }) => !long.has(last));
/** Those of `test:deep`. */
export const longWalks = walks.filter(({ last }) => long.has(last));

/** Does what the pages say, in a checkout of its own. */
export async function follow({ pages, last }: Walk): Promise<void> {
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
