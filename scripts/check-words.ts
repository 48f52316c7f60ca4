/**
 * Fails on words that this project does not use (banned-words.json), with what to write instead: in identifiers,
 * messages, comments and pages, and in the names of files.
 *
 * - `words` are searched in everything, also as parts of identifiers (`bar` in `fooBarBaz`), in any case.
 * - `identifiers` are searched in TypeScript only, outside of comments and strings: prose may use these words.
 * - `exempt` lists files (patterns), and of a file, if it has `text`, only the lines that contain this.
 *
 *     node scripts/check-words.ts [--root <folder>]
 */
import { readFileSync } from "node:fs";
import { join, matchesGlob } from "node:path";
import { parseArgs } from "node:util";
import { filesWith } from "./workspace.ts";

interface Entry {
	readonly pattern: string;
	readonly instead: string;
}

interface Exemption {
	readonly path: string;
	readonly text?: string;
	readonly reason: string;
}

const list: {
	readonly words: readonly Entry[];
	readonly identifiers: readonly Entry[];
	readonly exempt: readonly Exemption[];
} = JSON.parse(readFileSync(new URL("banned-words.json", import.meta.url), "utf8"));
const words = expressionOf(list.words, "gi");
const identifiers = expressionOf(list.identifiers, "g");

/** One expression for all entries: many files are searched. */
function expressionOf(entries: readonly Entry[], flags: string): RegExp {
	return new RegExp(`\\b(?:${entries.map(({ pattern }) => `(${pattern})`).join("|")})\\b`, flags);
}

function* found(expression: RegExp, entries: readonly Entry[], line: string): Iterable<string> {
	for (const [word, ...groups] of line.matchAll(expression)) {
		const entry = entries[groups.findIndex((group) => group !== undefined)];
		yield `"${word}": write ${entry?.instead}`;
	}
}

/** `fooBarBaz_qux` as `foo Bar Baz qux`. */
function separated(line: string): string {
	return line.replaceAll(/(?<=[a-z0-9])(?=[A-Z])|_/g, " ");
}

/** The line without comments and strings; all of it may be one. */
function codeOf(line: string): string {
	return line
		.replace(/^\s*(?:\/?\*|\/\/).*$/, "")
		.replaceAll(/"(?:[^"\\]|\\.)*"|`[^`]*`/g, '""')
		.replace(/\s\/\/.*$/, "");
}

function problemsOf(root: string, path: string): readonly string[] {
	const exemptions = list.exempt.filter((exemption) => matchesGlob(path, exemption.path));
	if (exemptions.some(({ text }) => text === undefined)) {
		return [];
	}
	const problems = [...found(words, list.words, separated(path))].map(
		(problem) => `${path}: the file's name has ${problem}`,
	);
	const lines = readFileSync(join(root, path), "utf8").split("\n");
	for (const [index, line] of lines.entries()) {
		if (exemptions.some(({ text }) => text !== undefined && line.includes(text))) {
			continue;
		}
		for (const problem of found(words, list.words, separated(line))) {
			problems.push(`${path}:${index + 1}: ${problem}`);
		}
		if (path.endsWith(".ts") || path.endsWith(".tsx")) {
			for (const problem of found(identifiers, list.identifiers, codeOf(line))) {
				problems.push(`${path}:${index + 1}: ${problem}`);
			}
		}
	}
	return problems;
}

const { values } = parseArgs({ options: { root: { type: "string", default: "." } } });
const problems = filesWith(values.root, [
	"ts",
	"tsx",
	"css",
	"html",
	"js",
	"md",
	"proto",
	"yaml",
	"yml",
])
	.filter((path) => !/(^|\/)gen\//.test(path) && path !== "pnpm-lock.yaml")
	.flatMap((path) => problemsOf(values.root, path));
if (problems.length > 0) {
	console.error(problems.join("\n"));
	process.exitCode = 1;
}
