import { readFileSync } from "node:fs";
import { type Document, isNode, isPair, LineCounter, parseDocument } from "yaml";

/** A file that people write is not valid. The message begins with its name, and in YAML its line and column. */
export class FileError extends Error {
	override readonly name = "FileError";
}

/** A YAML document with the locations of its parts. */
export interface LocatedYaml {
	readonly document: Document.Parsed;
	/** The document as plain values. */
	readonly value: unknown;
	/** An error about the part at the path, or about the part around it if the document has none there. */
	errorAt(path: readonly PropertyKey[], problem: string): FileError;
	/** `file:line:column` of the part at the path. */
	placeOf(path: readonly PropertyKey[]): string;
}

/**
 * Reads a YAML file.
 *
 * @throws FileError if it can't be read or is not YAML.
 */
export function readYaml(file: string): LocatedYaml {
	let text: string;
	try {
		text = readFileSync(file, "utf8");
	} catch (cause) {
		throw new FileError(`${file}: ${unreadable(cause)}`, { cause });
	}
	return parseYaml(file, text);
}

/**
 * Parses the content of a YAML file.
 *
 * @throws FileError if it is not YAML or repeats a key.
 */
export function parseYaml(file: string, text: string): LocatedYaml {
	const lines = new LineCounter();
	const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
	const placeAt = (offset: number) => {
		const { line, col } = lines.linePos(offset);
		return `${file}:${line}:${col}`;
	};
	const [problem] = [...document.errors, ...document.warnings];
	if (problem !== undefined) {
		const advice = problem.code === "TAB_AS_INDENT" ? ": use spaces" : "";
		throw new FileError(`${placeAt(problem.pos[0])}: ${problem.message}${advice}`);
	}
	const placeOf = (path: readonly PropertyKey[]) => {
		for (let length = path.length; length >= 0; length -= 1) {
			const offset = offsetOf(document, path.slice(0, length));
			if (offset !== undefined) {
				return placeAt(offset);
			}
		}
		return `${file}:1:1`;
	};
	return {
		document,
		value: document.toJS({ maxAliasCount: 100 }),
		placeOf,
		errorAt: (path, what) => new FileError(`${placeOf(path)}: ${what}`),
	};
}

/** Where the part at the path begins: at its key, if it has one. */
function offsetOf(document: Document.Parsed, path: readonly PropertyKey[]): number | undefined {
	const last = path.at(-1);
	const parent = path.length === 0 ? undefined : document.getIn(path.slice(0, -1), true);
	if (typeof last === "string" && isNode(parent) && "items" in parent) {
		for (const item of parent.items) {
			if (isPair(item) && isNode(item.key) && String(item.key) === last) {
				return item.key.range?.[0];
			}
		}
	}
	const node = path.length === 0 ? document.contents : document.getIn(path, true);
	return isNode(node) ? node.range?.[0] : undefined;
}

/** Why a file can't be read, for messages that name the file. */
export function unreadable(cause: unknown): string {
	const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
	if (code === "ENOENT") {
		return "no such file";
	}
	return cause instanceof Error ? cause.message : String(cause);
}
