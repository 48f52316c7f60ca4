import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { promisify } from "node:util";
import { parseAccessFile, parseCommandLine } from "@plinth/server/testing";
import type { Checkout } from "./checkout.ts";
import { exceptionFor } from "./exceptions.ts";
import { type Block, type Page, root } from "./page.ts";
import type { Terminals } from "./terminals.ts";

const run = promisify(execFile);

/**
 * Does what a reader of a page does, block by block. The words after the opening fence determine the kind of a block:
 *
 * | fence                           | block                                                        |
 * | ------------------------------- | ------------------------------------------------------------ |
 * | `sh`                            | lines for the main terminal, none of which fails             |
 * | `text`                          | the output of the lines before it, which may fail            |
 * | `sh server`                     | lines that start a server in its own terminal                |
 * | `sh watch`, `text watch`, …     | lines for a terminal of that name, and its output            |
 * | `ts`, `proto`, … with a path    | a file, named in the paragraph before                        |
 * | `yaml configuration`            | a configuration file of the server                           |
 * | `yaml access`                   | an access file                                               |
 *
 * The compiler checks the TypeScript and buf the protos: at the end, unless a line of the page does so after the
 * last file. Other files must be used by later lines.
 *
 * @throws Error that names the page and the line.
 */
export async function walkPage(
	{ path, blocks }: Page,
	checkout: Checkout,
	terminals: Terminals,
): Promise<void> {
	const files = new Map<string, Block>();
	/** The output shown so far of terminals with a command that keeps running. */
	const running = new Map<string, string>();
	let commands = "";
	/** Packages with TypeScript or protos that nothing has checked yet. */
	const unchecked = new Set<string>();
	for (const [at, block] of blocks.entries()) {
		const { language, about } = block;
		const text = checkout.replace(block.text);
		if (exceptionFor(path, block) !== undefined) {
			continue;
		}
		if (language === "sh" && about === "") {
			commands += text;
			await terminals.run(text);
			const next = blocks[at + 1];
			const isShown = next?.language === "text" && next.about === "";
			if (!isShown && terminals.failure !== undefined) {
				throw problem(block, `a command failed:\n${terminals.failure}`);
			}
			forgetChecked(unchecked, text, terminals);
		} else if (language === "sh") {
			commands += text;
			await terminals.start(about, text);
		} else if (language === "text") {
			await compareOutput(block, text, terminals, running);
		} else if (language !== "" && extname(about) === `.${language}`) {
			writeFile(block, checkout);
			files.set(about, block);
			if (isCode(about)) {
				unchecked.add(packageOf(join(checkout.folder, about)));
			}
			commands = commands.replaceAll(basename(about), "");
		} else {
			parseYaml(block, text, checkout);
		}
	}
	checkUsed(files, commands);
	for (const folder of unchecked) {
		await runTool("buf", ["lint", "proto"], folder);
		await runTool("tsc", ["-p", "."], folder);
	}
}

/** Removes the packages that lines have just checked, by the script of a project that runs both tools. */
function forgetChecked(unchecked: Set<string>, lines: string, { failure }: Terminals): void {
	for (const each of unchecked) {
		const runsBoth = scriptsOf(each).check === "buf lint proto && plinth generate code && tsc";
		if (runsBoth && failure === undefined && lines.split("\n").includes("npm run check")) {
			unchecked.delete(each);
		}
	}
}

function isCode(file: string): boolean {
	return file.endsWith(".ts") || file.endsWith(".proto");
}

function scriptsOf(folder: string): Readonly<Record<string, string>> {
	const manifest: { readonly scripts?: Readonly<Record<string, string>> } = JSON.parse(
		readFileSync(join(folder, "package.json"), "utf8"),
	);
	return manifest.scripts ?? {};
}

async function compareOutput(
	block: Block,
	text: string,
	terminals: Terminals,
	running: Map<string, string>,
): Promise<void> {
	const terminal = block.about || "main";
	const shown = terminal === "main" ? text : (running.get(terminal) ?? "") + text;
	running.set(terminal, shown);
	const printed = await terminals.compare(terminal, shown);
	if (printed !== undefined) {
		throw problem(block, `printed:\n${printed}\nshown:\n${shown}`);
	}
}

function writeFile(block: Block, checkout: Checkout): void {
	const { about, before, text } = block;
	if (!before.includes(`${basename(about)}\``)) {
		throw problem(block, `the paragraph before does not name \`${basename(about)}\``);
	}
	checkout.write(about, text);
}

function parseYaml(block: Block, text: string, checkout: Checkout): void {
	const { language, about } = block;
	if (language === "yaml" && about === "configuration") {
		checkout.write("plinth.yaml", block.text);
		parseCommandLine(["--config", join(checkout.folder, "plinth.yaml")]);
	} else if (language === "yaml" && about === "access") {
		parseAccessFile("access.yaml", text);
	} else {
		throw problem(block, `nothing checks a block of "${language} ${about}": see exceptions.ts`);
	}
}

function checkUsed(files: ReadonlyMap<string, Block>, commands: string): void {
	for (const [file, block] of files) {
		const isRead = ["buf.yaml", "buf.gen.yaml", "package.json", "tsconfig.json"].includes(
			basename(file),
		);
		if (!isCode(file) && !isRead && !commands.includes(basename(file))) {
			throw problem(block, `no command after it uses ${basename(file)}`);
		}
	}
}

function packageOf(file: string): string {
	const folder = dirname(file);
	return existsSync(join(folder, "package.json")) ? folder : packageOf(folder);
}

async function runTool(name: string, args: readonly string[], cwd: string): Promise<void> {
	try {
		await run(join(root, "node_modules/.bin", name), args, { cwd });
	} catch (failure) {
		const { stdout, stderr } = failure as { readonly stdout: string; readonly stderr: string };
		throw new Error(`${name} ${args.join(" ")} in ${cwd}:\n${stdout}${stderr}`);
	}
}

function problem({ at }: Block, message: string): Error {
	return new Error(`${at}: ${message}`);
}
