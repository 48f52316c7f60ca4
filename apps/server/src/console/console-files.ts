import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";
import type { ContentCoding } from "./accepted-encoding.ts";

/** A file of the console, with its compressed forms. */
export interface ConsoleFile {
	readonly contentType: string;
	/** Whether its name changes with its content, so that it can be cached forever. */
	readonly isImmutable: boolean;
	/** Identifies the content, without quotes. */
	readonly tag: string;
	readonly plain: Uint8Array;
	readonly compressed: ReadonlyMap<ContentCoding, Uint8Array>;
}

/** The files of a console, by their paths below its folder, as in `assets/index-abc.js`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

/** The page that loads all else. */
export const indexFile = "index.html";

/** The limits of a folder: a console has some dozen files, of some megabytes with their compressed forms. */
const mostFiles = 1_000;
const mostBytes = 64 * 2 ** 20;

const contentTypes: Readonly<Record<string, string>> = {
	".html": "text/html; charset=utf-8",
	".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
	".woff2": "font/woff2",
};

const extensions: readonly (readonly [string, ContentCoding])[] = [
	[".br", "br"],
	[".gz", "gzip"],
];

/**
 * Reads the built files of a console. Only regular files of known types are among them.
 *
 * @throws Error if there are too many files, or too large ones.
 */
export async function readConsoleFiles(folder: string): Promise<ConsoleFiles> {
	const contents = new Map<string, Uint8Array>();
	let bytes = 0;
	for (const path of await regularFiles(folder)) {
		const content = await readFile(join(folder, path));
		bytes += content.length;
		if (contents.size === mostFiles || bytes > mostBytes) {
			throw new Error(
				`${folder} has more than ${mostFiles} files or ${mostBytes} bytes: it is not the console`,
			);
		}
		contents.set(path.split(sep).join("/"), content);
	}
	const files = new Map<string, ConsoleFile>();
	for (const [path, plain] of contents) {
		const contentType = contentTypes[extname(path)];
		if (contentType !== undefined) {
			files.set(path, {
				contentType,
				isImmutable: path.startsWith("assets/"),
				tag: createHash("sha256").update(plain).digest("base64url").slice(0, 22),
				plain,
				compressed: new Map(
					extensions.flatMap(([extension, coding]) => {
						const content = contents.get(path + extension);
						return content === undefined ? [] : [[coding, content] as const];
					}),
				),
			});
		}
	}
	return files;
}

async function regularFiles(folder: string): Promise<readonly string[]> {
	const entries = await readdir(folder, { recursive: true, withFileTypes: true });
	return entries
		.filter((entry) => entry.isFile())
		.map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

/** When the console in a folder was built, in milliseconds since the epoch; `undefined` if there is none. */
export async function builtAtMs(folder: string): Promise<number | undefined> {
	try {
		return (await stat(join(folder, indexFile))).mtimeMs;
	} catch {
		return undefined;
	}
}
