/** Where the cursor is in a document of YAML. */
export interface YamlCursor {
	/** The keys of the mappings around it, from the outside. */
	readonly path: readonly string[];
	/** The key whose value it is in; `undefined` if it is in a key. */
	readonly key: string | undefined;
	/** What is written before it, of the key or the value. */
	readonly word: string;
}

/** A key at the beginning of a line, perhaps of an item of a list. */
const keyLine = /^( *(?:- +)*)("?[\w./-]+"?):(?: +(.*))?$/;

/**
 * Where the end of a text is, by the indentation of its lines: the text may be incomplete, so that a parser of YAML could not
 * tell. `undefined` if it is in neither a key nor a simple value.
 */
export function yamlCursor(text: string): YamlCursor | undefined {
	const lines = text.split("\n");
	const line = lines.pop() ?? "";
	const inKey = /^( *(?:- +)*)([\w./-]*)$/.exec(line);
	if (inKey !== null) {
		const [, lead = "", word = ""] = inKey;
		return { path: pathTo(lines, lead), key: undefined, word };
	}
	const [, lead, key, value = ""] = keyLine.exec(line) ?? [];
	return lead === undefined || key === undefined || !/^[\w./-]*$/.test(value)
		? undefined
		: { path: pathTo(lines, lead), key: unquoted(key), word: value };
}

/** A key of a document of YAML, at the beginning of a line. */
export interface YamlKey {
	/** The keys of the mappings around it, from the outside. */
	readonly path: readonly string[];
	readonly key: string;
	/** The position of its first character in the text. */
	readonly from: number;
	/** The position behind its last character. */
	readonly to: number;
}

/** The key at a position of a text, by the indentation of its lines; `undefined` if there is none. */
export function yamlKeyAt(text: string, position: number): YamlKey | undefined {
	const start = text.lastIndexOf("\n", position - 1) + 1;
	const end = text.indexOf("\n", position);
	const line = text.slice(start, end < 0 ? undefined : end);
	const [, lead, key] = keyLine.exec(line) ?? [];
	if (lead === undefined || key === undefined) {
		return undefined;
	}
	const from = start + lead.length;
	const to = from + key.length;
	return position < from || position > to
		? undefined
		: { ...{ from, to, key: unquoted(key) }, path: pathTo(text.slice(0, start).split("\n"), lead) };
}

/** The keys of the lines above that enclose a key after this lead of spaces and dashes. */
function pathTo(lines: readonly string[], lead: string): readonly string[] {
	const path: string[] = [];
	// A key encloses what is indented more than it; an item of a list may be as far left as its key.
	let indent = limitOf(lead, lead.length);
	for (const line of lines.toReversed()) {
		const [, before, key] = keyLine.exec(line) ?? [];
		if (before === undefined || key === undefined) {
			continue;
		}
		if (before.length < indent) {
			path.unshift(unquoted(key));
			indent = limitOf(before, before.length);
		} else if (before.length === indent) {
			// A key beside it: the first of an item has the dash of both.
			indent = limitOf(before, indent);
		}
	}
	return path;
}

function limitOf(lead: string, indent: number): number {
	const dash = lead.indexOf("-");
	return dash < 0 ? indent : dash + 1;
}

function unquoted(key: string): string {
	return key.replaceAll('"', "");
}
