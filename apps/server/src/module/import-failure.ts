import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, extname, isAbsolute, join, parse, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { type CodePosition, codeFrame } from "@plinth/runtime";
import { nearest } from "../configuration/did-you-mean.ts";

/** A part of a source file. */
interface Place extends CodePosition {
	/** An absolute path. */
	readonly file: string;
}

/**
 * Explains why `import()` failed: a syntax error or an import of something that does not exist with its place and the
 * code around it; an error that the code throws with the part of its stack that is the module's own.
 *
 * @param cause what `import()` rejected with.
 * @param path the path of the imported file.
 */
export function explainImportFailure(cause: unknown, path: string): string {
	if (!(cause instanceof Error)) {
		return `it throws ${inspect(cause)}`;
	}
	const { stack = "" } = cause;
	const isUnplaced = cause.name === "SyntaxError" && stack.includes("compileSourceTextModule");
	const parsed = placeIn(stack) ?? (isUnplaced ? placeInModules(path) : undefined);
	if (parsed !== undefined) {
		return atPlace(parsed, explainSyntax(cause));
	}
	return explainMissing(cause) ?? explainThrown(cause);
}

function atPlace(place: Place, problem: string): string {
	const { file, line, column } = place;
	const position = [shownPath(file), line, column].filter((each) => each !== undefined).join(":");
	const source = readSource(file);
	const frame = source === undefined ? "" : `\n\n${codeFrame(source, place)}`;
	return `${position}: ${problem}${frame}`;
}

/** Node.js puts `file:line`, the line, and an arrow before the stack of a syntax error. */
function placeIn(stack: string): Place | undefined {
	const match = /^(\S.*):(\d+)\n(?:.*\n){1,9}?([ \t]*)(\^+)(?:\n|$)/.exec(stack);
	if (match === null) {
		return endIn(stack);
	}
	const [, file = "", line = "", indent = "", arrow = ""] = match;
	return {
		file: pathOf(file),
		line: Number(line),
		column: indent.length + 1,
		length: arrow.length,
	};
}

/** Where the end of the file is unexpected, there is no arrow. */
function endIn(stack: string): Place | undefined {
	const match = /^((?:file:|\/|[A-Za-z]:\\).*):(\d+)\n(.*)\n\s*\n(?:Syntax)?Error\b(.*)/.exec(
		stack,
	);
	if (match === null) {
		return undefined;
	}
	const [, file = "", line = "", text = "", message = ""] = match;
	const place = { file: pathOf(file), line: Number(line) };
	return /\beof\b|end of input/.test(message) ? { ...place, column: text.length + 1 } : place;
}

/** The most files that are checked for the place of a syntax error. */
const mostChecked = 50;

/**
 * The place of the syntax error in a JavaScript module or in one that it imports: the error of `import()` lacks it, and
 * that of `node --check`, which does not evaluate anything, has it.
 */
function placeInModules(path: string): Place | undefined {
	const files = new Set([path]);
	let checked = 0;
	for (const file of files) {
		if (/\.m?js$/.test(file) && checked < mostChecked) {
			checked += 1;
			const { stderr } = spawnSync(process.execPath, ["--check", file], { encoding: "utf8" });
			const place = placeIn(stderr);
			if (place !== undefined) {
				return place;
			}
		}
		for (const [, name = ""] of (readSource(file) ?? "").matchAll(
			/\b(?:from|import)\s*["'](\.[^"']+)["']/g,
		)) {
			files.add(resolve(dirname(file), name));
		}
	}
	return undefined;
}

function explainSyntax(error: Error): string {
	const { message } = error;
	if (codeOf(error) === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") {
		return `${message}: Node.js only erases types, so a module can use erasable syntax only, for example an object with "as const" instead of an enum; "erasableSyntaxOnly" in tsconfig.json reports all such places`;
	}
	const [, from, name] =
		/^The requested module '(.*)' does not provide an export named '(.*)'$/.exec(message) ?? [];
	return name === undefined
		? `${error.name}: ${message}`
		: `${from} has no export ${name}; if it is a type, import it with "import type"`;
}

/** The explanation of an import whose file or package does not exist. */
function explainMissing(error: Error): string | undefined {
	const [, kind, missing = "", importer = ""] =
		/^Cannot find (module|package) '(.+)' imported from (.+)$/.exec(error.message) ?? [];
	if (kind === undefined) {
		return undefined;
	}
	const file = pathOf(importer);
	if (kind === "package") {
		const place = importOf(file, (name) => name === missing || name.startsWith(`${missing}/`));
		return atPlace(place, `package ${missing} is not installed: npm install ${missing}`);
	}
	const target = pathOf(missing);
	const folder = dirname(file);
	const place = importOf(file, (name) => resolve(folder, pathOf(name)) === target);
	return atPlace(place, `no such file: ${shownPath(target)}${adviceOnFile(target, folder)}`);
}

/** Where a file imports a name that matches; its first line if that can't be found. */
function importOf(file: string, matches: (name: string) => boolean): Place {
	const lines = readSource(file)?.split("\n") ?? [];
	for (const [index, line] of lines.entries()) {
		for (const match of line.matchAll(/(["'])(.+?)\1/g)) {
			if (matches(match[2] ?? "")) {
				return { file, line: index + 1, column: match.index + 1, length: match[0].length };
			}
		}
	}
	return { file, line: 1 };
}

function adviceOnFile(target: string, folder: string): string {
	const near = similarFile(target);
	if (near !== undefined) {
		const path = relative(folder, near);
		return `; did you mean ${path.startsWith(".") ? path : `./${path}`}?`;
	}
	return /_pb\.[jt]s$/.test(target) ? "; it is generated code: run buf generate" : "";
}

/** An existing file of the same folder whose name is similar, or the same with another extension. */
export function similarFile(target: string): string | undefined {
	const { dir, name } = parse(target);
	const known = [".ts", ".js", ".mts", ".mjs"];
	const stem = known.includes(extname(target)) ? join(dir, name) : target;
	const sibling = known.map((extension) => stem + extension).find((each) => existsSync(each));
	if (sibling !== undefined) {
		return sibling;
	}
	const files = readFolder(dir).filter((each) => known.includes(extname(each)));
	const near = nearest(parse(target).base, files);
	return near === undefined ? undefined : join(dir, near);
}

/** An error that the code throws, with the frames of its stack that are neither Node's nor Plinth's, and its causes. */
function explainThrown(error: Error): string {
	const frames = (error.stack ?? "").split("\n").flatMap((line) => ownFrame(line) ?? []);
	const name = error.name === "Error" ? "" : `${error.name}: `;
	const own = [`${name}${error.message}`, ...frames].join("\n");
	return error.cause instanceof Error ? `${own}\ncaused by ${explainThrown(error.cause)}` : own;
}

/** A line of a stack with a shorter path; `undefined` if it is no frame, or not of the module. */
function ownFrame(line: string): string | undefined {
	const match = /^( +at (?:async )?(?:.+ \()?)((?:file:|\/|[A-Za-z]:\\).+?)(:\d+:\d+\)?)$/.exec(
		line,
	);
	const [, before = "", file = "", position = ""] = match ?? [];
	if (match === null) {
		return undefined;
	}
	const path = pathOf(file);
	return foldersOfPlinth().some((folder) => path.startsWith(folder))
		? undefined
		: `${before}${shownPath(path)}${position}`;
}

/** The folders of the code of this package, and of those whose functions modules call while they are imported. */
function foldersOfPlinth(): readonly string[] {
	const packages = ["controller", "db-constraint", "resource", "resource-service"];
	return [
		new URL("../", import.meta.url),
		...packages.map((name) => new URL(".", import.meta.resolve(`@plinth/${name}`))),
	].map((url) => fileURLToPath(url));
}

/** A path as a user would write it: relative to the working directory, if it is below. */
function shownPath(path: string): string {
	const short = relative(process.cwd(), path);
	return short === "" || short.startsWith("..") || isAbsolute(short) ? path : short;
}

function pathOf(file: string): string {
	return file.startsWith("file:") ? fileURLToPath(file) : file;
}

function readSource(file: string): string | undefined {
	try {
		return readFileSync(file, "utf8");
	} catch {
		return undefined;
	}
}

function readFolder(folder: string): readonly string[] {
	try {
		return readdirSync(folder);
	} catch {
		return [];
	}
}

function codeOf(error: Error): unknown {
	return "code" in error ? error.code : undefined;
}
