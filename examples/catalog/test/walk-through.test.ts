import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { itWith, temporaryFolder } from "@plinth/test-support";
import { freePort, freePortsInARow } from "@plinth/test-support/ports";
import { describe, expect, onTestFinished } from "vitest";
import { type Block, blocksOf, isAsShown, Terminal } from "./walk-through.fixture.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const page = fileURLToPath(new URL("../README.md", import.meta.url));

/** What the page says that people type, and what it runs. */
const startCommand = "npx -y pnpm@12 start";
const startScript =
	"node apps/server/src/main.ts --module ./examples/catalog/src/module.ts --data-dir ./data";

/** A free port for Plinth, and a number that makes three more with a digit, from 1 to 3, after it. */
async function choosePorts(): Promise<{ readonly plinth: number; readonly stem: number }> {
	const row = await freePortsInARow(13);
	return { plinth: await freePort(), stem: Math.ceil(row / 10) };
}

/**
 * The page's blocks with what one machine has only once, the ports and the folder, replaced by this
 * test's own. Everything else is as it stands.
 */
async function pageOnThisMachine(): Promise<{
	readonly address: string;
	readonly blocks: readonly Block[];
}> {
	const { scripts } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
	expect(scripts.start).toBe(startScript);
	const { plinth, stem } = await choosePorts();
	const address = `127.0.0.1:${plinth}`;
	const start = startScript.replace("./data", join(await temporaryFolder(), "data"));
	const replacements: readonly (readonly [string | RegExp, string])[] = [
		[startCommand, `exec ${start} --listen ${address}`],
		["127.0.0.1:7575", address],
		// The page makes its ports of 900 and a digit.
		[/\b900(?=[123$])/g, String(stem)],
	];
	const blocks = blocksOf(await readFile(page, "utf8")).map((block) => ({
		...block,
		text: replacements.reduce((text, [from, to]) => text.replaceAll(from, to), block.text),
	}));
	return { address, blocks };
}

describe("the walk-through of README.md", () => {
	itWith("curl")("works as it stands, line by line", async () => {
		const folder = root;
		const terminals = new Map<string, Terminal>();
		onTestFinished(() => {
			for (const terminal of terminals.values()) {
				terminal.kill();
			}
		});
		const open = (name: string) => {
			const terminal = new Terminal(folder);
			terminals.set(name, terminal);
			return terminal;
		};

		const main = open("main");
		let pasted = "";
		let printed = "";
		let watched = "";
		const { address, blocks } = await pageOnThisMachine();
		for (const { kind, terminal, text } of blocks) {
			if (terminal === "plinth") {
				await terminals.get("plinth")?.interrupt();
				const plinth = open("plinth");
				plinth.paste(text);
				await plinth.prints("Try next");
			} else if (terminal === "watch" && kind === "commands") {
				open("watch").paste(text);
				await expect.poll(() => openStreams(address), { timeout: 300_000 }).toContain("WatchList");
			} else if (terminal === "watch") {
				// What a pipe prints is seen when it ends: all of it is compared then.
				watched += text;
			} else if (kind === "commands") {
				pasted = text;
				printed = await main.run(text);
				expect(printed).not.toContain('"code":"unimplemented"');
			} else {
				printed = await seen(main, pasted, printed, text);
				expect(isAsShown(printed, text), `printed:\n${printed}\nshown:\n${text}`).toBe(true);
			}
		}
		await terminals.get("plinth")?.interrupt();
		const watch = terminals.get("watch");
		await watch?.closed();
		const events = watch?.output ?? "";
		expect(isAsShown(events, watched), `watched:\n${events}\nshown:\n${watched}`).toBe(true);
	});
});

/** What the server says of the streams that are open: a watch sees only what happens after it was opened. */
async function openStreams(address: string): Promise<string> {
	const response = await fetch(`http://${address}/metrics`);
	const lines = (await response.text()).split("\n");
	return lines.filter((line) => /^plinth_streams_open.* [1-9]/.test(line)).join("\n");
}

/**
 * What the last of the pasted lines prints. On a loaded machine it may be too early for what the page
 * shows after its sleep, and is run again.
 */
async function seen(
	terminal: Terminal,
	pasted: string,
	printed: string,
	shown: string,
): Promise<string> {
	let latest = printed;
	for (
		let tries = 0;
		tries < 20 && pasted.includes("sleep") && !isAsShown(latest, shown);
		tries += 1
	) {
		latest = await terminal.run(`sleep 0.5\n${pasted.trimEnd().split("\n").at(-1)}`);
	}
	return latest;
}
