import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { isMap, isNode, isScalar, LineCounter, parseDocument, stringify } from "yaml";
import { type Failure, usageFailure } from "../failure.ts";
import { suggestion } from "../suggest.ts";

/** A named server, with the credentials and defaults for it. */
export interface Context {
	readonly server: string;
	readonly token?: string;
	readonly partition?: string;
	readonly namespace?: string;
	readonly ca_file?: string;
	readonly certificate_file?: string;
	readonly key_file?: string;
}

/** The fields of a context. */
const contextFields = [
	...["server", "token", "partition", "namespace"],
	...["ca_file", "certificate_file", "key_file"],
] as const;

/** The content of the configuration file. */
export interface Configuration {
	/** The default context. */
	readonly current?: string;
	readonly contexts: Readonly<Record<string, Context>>;
}

/** The path of the configuration file: `PLINTH_CONFIG`, or a file in the user's configuration folder. */
export function configFilePath(env: Readonly<Record<string, string | undefined>>): string {
	const folder = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config");
	return env.PLINTH_CONFIG || join(folder, "plinth", "config.yaml");
}

/**
 * Reads the file. A missing file is an empty configuration.
 *
 * @param warn - called if other users may read the tokens in the file.
 * @throws Failure if the file is malformed. The message never contains any of its content.
 */
export function readConfiguration(file: string, warn: (message: string) => void): Configuration {
	let text: string;
	try {
		text = readFileSync(file, "utf8");
	} catch (cause) {
		if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") {
			return { contexts: {} };
		}
		throw usageFailure(`can't read ${file}: ${String(cause)}`, { cause });
	}
	const configuration = check(parseYaml(file, text));
	const mode = statSync(file).mode & 0o777;
	const hasToken = Object.values(configuration.contexts).some(({ token }) => token !== undefined);
	if (hasToken && (mode & 0o077) !== 0) {
		warn(`other users may read the tokens in ${file}; run: chmod 600 ${file}`);
	}
	return configuration;
}

/** Replaces the file atomically. Only its owner can read it. */
export function writeConfiguration(file: string, configuration: Configuration): void {
	mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
	const temporary = `${file}.${randomBytes(6).toString("hex")}`;
	writeFileSync(temporary, stringify(configuration), { mode: 0o600, flag: "wx" });
	chmodSync(temporary, 0o600);
	renameSync(temporary, file);
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

function check(file: ParsedFile): Configuration {
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
