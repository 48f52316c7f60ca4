import { suggestion } from "@plinth/documents/suggest";
import { isMap, isNode, isScalar, LineCounter, parseDocument } from "yaml";
import { type Failure, usageFailure } from "../failure.ts";
import type { Configuration, Context } from "./configuration.ts";

/** The fields of a context. */
const contextFields = [
	...["server", "token", "partition", "namespace"],
	...["ca_file", "certificate_file", "key_file"],
] as const;

/** The content of the configuration file. @throws Failure if it is malformed. */
export function parseConfiguration(path: string, text: string): Configuration {
	const file = parseYaml(path, text);
	const { current, contexts = {}, ...others } = fieldsOf(file, [], file.value);
	refuseOthers(file, [], Object.keys(others), ["current", "contexts"]);
	if (current !== undefined && typeof current !== "string") {
		throw problemAt(file, ["current"], "must be the name of a context");
	}
	const checked = Object.fromEntries(
		Object.entries(fieldsOf(file, ["contexts"], contexts)).map(([name, context]) => [
			name,
			checkContext(file, ["contexts", name], context),
		]),
	);
	return { ...(current !== undefined && { current }), contexts: checked };
}

/** A parsed configuration file. */
interface ParsedFile {
	readonly value: unknown;
	/** `file:line:column` of the field at the path, or of the nearest one around it. */
	placeOf(path: readonly string[]): string;
}

function parseYaml(file: string, text: string): ParsedFile {
	const lines = new LineCounter();
	const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
	const placeAt = (offset: number) => {
		const { line, col } = lines.linePos(offset);
		return `${file}:${Math.max(1, line)}:${Math.max(1, col)}`;
	};
	const [problem] = document.errors;
	let value: unknown;
	try {
		value = problem === undefined ? document.toJS({ maxAliasCount: 100 }) : undefined;
	} catch (cause) {
		throw usageFailure(`${file} is not valid YAML: correct or delete it`, { cause });
	}
	if (problem !== undefined) {
		// The message must not quote the source: it may contain a token.
		throw usageFailure(`${placeAt(problem.pos[0])}: it is not valid YAML: correct or delete it`);
	}
	return {
		value: value ?? {},
		placeOf(path) {
			for (let length = path.length; length > 0; length -= 1) {
				const parent = document.getIn(path.slice(0, length - 1), true);
				const pair = isMap(parent)
					? parent.items.find(({ key }) => isScalar(key) && String(key.value) === path[length - 1])
					: undefined;
				if (isNode(pair?.key) && pair.key.range) {
					return placeAt(pair.key.range[0]);
				}
			}
			return placeAt(0);
		},
	};
}

function checkContext(file: ParsedFile, path: readonly string[], value: unknown): Context {
	const fields = fieldsOf(file, path, value);
	refuseOthers(
		file,
		path,
		Object.keys(fields).filter((key) => !contextFields.some((field) => field === key)),
		contextFields,
	);
	const texts: Record<string, string> = {};
	for (const [key, text] of Object.entries(fields)) {
		if (typeof text !== "string") {
			throw problemAt(file, [...path, key], "must be a string");
		}
		texts[key] = text;
	}
	const { server, ...rest } = texts;
	if (server === undefined) {
		throw problemAt(file, [...path, "server"], "is required");
	}
	return { server, ...rest };
}

function fieldsOf(
	file: ParsedFile,
	path: readonly string[],
	value: unknown,
): Record<string, unknown> {
	if (typeof value !== "object" || value === null || Array.isArray(value)) {
		throw problemAt(file, path, "must be a mapping");
	}
	return { ...value };
}

function refuseOthers(
	file: ParsedFile,
	path: readonly string[],
	others: readonly string[],
	known: readonly string[],
): void {
	const [first] = others;
	if (first !== undefined) {
		const hint = suggestion(first, known);
		throw usageFailure(
			`${file.placeOf([...path, first])}: ${nameOf(path)} has no field ${first}${hint}`,
		);
	}
}

function problemAt(file: ParsedFile, path: readonly string[], problem: string): Failure {
	return usageFailure(`${file.placeOf(path)}: ${nameOf(path)} ${problem}`);
}

function nameOf(path: readonly string[]): string {
	return path.length === 0 ? "it" : path.join(".");
}
