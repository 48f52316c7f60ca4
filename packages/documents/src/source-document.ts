import {
	type Document,
	type ErrorCode,
	isAlias,
	isMap,
	isScalar,
	isSeq,
	LineCounter,
	type Node,
	parseAllDocuments,
} from "yaml";
import { nestedTooDeeply } from "./nesting.ts";
import type { Origin, Position, Problem } from "./position.ts";
import { quoted, shortened } from "./shortened.ts";

/** The maximum number of aliases that are resolved in a document, as a guard against loops. */
const maxAliases = 1_000;

/** What to do about some errors of the parser. */
const advice: Partial<Record<ErrorCode, string>> = {
	TAB_AS_INDENT: ": use spaces",
	BLOCK_AS_IMPLICIT_KEY: ": check the indentation of this line and the next",
};

/** A field of a mapping, with its nodes in the source. */
export interface Entry {
	readonly key: string;
	readonly keyNode: Node | undefined;
	readonly value: Node | undefined;
}

/** A parsed document. It records the positions of paths, and the problems. */
export class SourceDocument {
	readonly origin: Origin;
	readonly root: Node | undefined;
	readonly problems: Problem[] = [];
	readonly #document: Document | undefined;
	readonly #lines: LineCounter;
	readonly #positions = new Map<string, Position>();
	#aliases = 0;

	constructor(
		origin: Origin,
		lines: LineCounter,
		document: Document | undefined,
		root: Node | undefined,
	) {
		this.origin = origin;
		this.#lines = lines;
		this.#document = document;
		this.root = root;
	}

	/** The document as plain values; `undefined` if it has too many aliases. */
	value(): unknown {
		try {
			return this.#document && this.root?.toJS(this.#document, { maxAliasCount: maxAliases });
		} catch {
			return undefined;
		}
	}

	/** The node, with aliases resolved. Records the position of the path. */
	enter(path: string, node: Node | undefined, at = node): Node | undefined {
		this.#positions.set(path, this.#positionOf(at ?? node));
		if (!isAlias(node)) {
			return node;
		}
		this.#aliases += 1;
		const target =
			this.#aliases > maxAliases || this.#document === undefined
				? undefined
				: node.resolve(this.#document);
		if (target === undefined) {
			this.report(node, path, `the alias *${node.source} can't be resolved`);
		}
		return target;
	}

	/** The entries of a mapping. Reports a problem and returns `undefined` for any other node. */
	entries(node: Node | undefined, path: string, what: string): readonly Entry[] | undefined {
		if (!isMap(node)) {
			this.report(node, path, `expected ${what}, got ${describeNode(node)}`);
			return undefined;
		}
		return node.items.map(({ key, value }) => ({
			key: isScalar(key) ? String(key.value) : String(key),
			keyNode: nodeOf(key),
			value: nodeOf(value),
		}));
	}

	report(node: Node | undefined, path: string, message: string): void {
		this.problems.push({ position: this.#positionOf(node), path, message });
	}

	/** The position of the path, or of its nearest recorded parent. */
	positionOf(path: string): Position {
		let at = path;
		for (;;) {
			const position = this.#positions.get(at);
			if (position !== undefined) {
				return position;
			}
			if (at === "") {
				return { line: 1, column: 1 };
			}
			at = at.replace(/(\.?[^.[\]]*|\["[^"]*"\]|\[\d+\])$/, "");
		}
	}

	#positionOf(node: Node | undefined): Position {
		const offset = node?.range?.[0] ?? this.root?.range?.[0] ?? 0;
		const { line, col } = this.#lines.linePos(offset);
		return { line: Math.max(1, line), column: Math.max(1, col) };
	}
}

/** The value as a node, or `undefined` if it is not a node. */
export function nodeOf(value: unknown): Node | undefined {
	return isMap(value) || isSeq(value) || isScalar(value) || isAlias(value) ? value : undefined;
}

/** Describes a node in a message. */
export function describeNode(node: Node | undefined): string {
	if (isMap(node)) {
		return "a mapping";
	}
	if (isSeq(node)) {
		return "a list";
	}
	if (isScalar(node) && node.value !== null && node.value !== undefined) {
		const { value } = node;
		return typeof value === "string" ? quoted(value) : shortened(String(value));
	}
	return "nothing";
}

/**
 * Parses the documents of a file in YAML, or JSON, which is also YAML. Each item of a top-level list is a
 * document. Empty documents are omitted, but counted.
 */
export function parseDocuments(file: string, text: string): readonly SourceDocument[] {
	const lines = new LineCounter();
	const parsed = parseAllDocuments(text.replace(/^\uFEFF/, ""), {
		lineCounter: lines,
		intAsBigInt: true,
		prettyErrors: false,
		logLevel: "error",
	});
	const sources: SourceDocument[] = [];
	let count = 0;
	for (const document of "empty" in parsed ? [] : parsed) {
		const contents = document.contents ?? undefined;
		const roots = isSeq(contents) ? contents.items.map(nodeOf) : [contents];
		for (const root of roots) {
			count += 1;
			const source = new SourceDocument({ file, document: count }, lines, document, root);
			const first = document.errors[0];
			if (first !== undefined) {
				const { line, col } = lines.linePos(first.pos[0]);
				const message = nestedTooDeeply(first) ?? `${first.message}${advice[first.code] ?? ""}`;
				source.problems.push({ position: { line, column: col }, path: "", message });
			}
			const isEmpty = root === undefined || (isScalar(root) && root.value === null);
			if (!isEmpty || source.problems.length > 0) {
				sources.push(source);
			}
		}
	}
	return sources;
}
