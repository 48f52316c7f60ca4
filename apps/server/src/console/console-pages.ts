import type { Logger } from "@plinth/runtime";
import { type Exchange, pieceBytes } from "../listener/exchange.ts";
import { type HttpRequest, type HttpResponse, pathOf } from "../listener/request-handler.ts";
import type { PageHandler } from "../listener/rpc-handler.ts";
import { acceptedCoding } from "./accepted-encoding.ts";
import type { ConsoleBuild } from "./console-build.ts";
import {
	builtAtMs,
	type ConsoleFile,
	type ConsoleFiles,
	indexFile,
	readConsoleFiles,
} from "./console-files.ts";
import { consoleHeaders } from "./console-headers.ts";
import type { InstalledConsole } from "./installed-console.ts";
import { type MissingConsole, missingPage, reloadScript, retrySeconds } from "./missing-page.ts";

/** The path of the console. */
const root = "/console";

/** Options of `createConsolePages`. */
export interface ConsolePagesOptions {
	/** The console, or `undefined` if it is not installed. Called once, at the first request. */
	readonly installed: () => Promise<InstalledConsole | undefined>;
	/** Builds the console at the first request, if it is not built and there is a program that does. */
	readonly build: ConsoleBuild;
	readonly logger: Logger;
}

/** What is sent. */
interface Page {
	readonly status: number;
	readonly headers: Readonly<Record<string, string>>;
	readonly body: Uint8Array;
}

/**
 * Serves the console at `/console/`, to GET and HEAD, without a token: its files are public, and what they show is not.
 *
 * The files are read at the first request, and again when the console was built again. A path selects one of the files that
 * were read, by its exact name, so that no path leads out of the folder.
 */
export function createConsolePages({ installed, build, logger }: ConsolePagesOptions): PageHandler {
	const files = new LoadedFiles(installed, build);
	return {
		has: (path) => path === root || path.startsWith(`${root}/`),
		serve: (exchange, request, response) => {
			pageFor(request, files, build)
				.catch((error: unknown) => {
					logger.error({ err: error }, "the console could not be read");
					return textPage(500, "the console could not be read: the log of the server says why");
				})
				.then((page) => send(page, exchange, request, response))
				.catch(() => {
					// The client is gone, or was ended because it does not read.
					exchange.destroy();
				})
				.finally(() => exchange.settled());
		},
	};
}

/** The files of the folder, as they were built last. */
class LoadedFiles {
	readonly #installed: () => Promise<InstalledConsole | undefined>;
	readonly #build: ConsoleBuild;
	#found: Promise<InstalledConsole | undefined> | undefined;
	#builtMs: number | undefined;
	#files: Promise<ConsoleFiles> | undefined;

	constructor(installed: () => Promise<InstalledConsole | undefined>, build: ConsoleBuild) {
		this.#installed = installed;
		this.#build = build;
	}

	async get(): Promise<ConsoleFiles | MissingConsole> {
		this.#found ??= this.#installed();
		const found = await this.#found;
		if (found === undefined) {
			return "not installed";
		}
		const { folder, buildProgram } = found;
		const builtMs = await builtAtMs(folder);
		if (builtMs === undefined) {
			return buildProgram === undefined ? "not built" : this.#built(buildProgram);
		}
		if (this.#files === undefined || builtMs !== this.#builtMs) {
			this.#builtMs = builtMs;
			this.#files = readConsoleFiles(folder);
			// The next request reads again.
			this.#files.catch(() => {
				this.#files = undefined;
			});
		}
		return this.#files;
	}

	/** Builds what is not built. */
	#built(program: string): MissingConsole {
		this.#build.start(program);
		switch (this.#build.state) {
			case "running":
				return "being built";
			case "failed":
				return "not buildable";
			default:
				return "not built";
		}
	}
}

async function pageFor(
	request: HttpRequest,
	loaded: LoadedFiles,
	build: ConsoleBuild,
): Promise<Page> {
	if (request.method !== "GET" && request.method !== "HEAD") {
		return textPage(405, "method not allowed: send GET or HEAD", { allow: "GET, HEAD" });
	}
	const path = pathOf(request);
	if (path === root) {
		// Relative: a proxy may serve the console below a prefix.
		return textPage(308, "the console is at console/", { location: "console/" });
	}
	const name = path.slice(root.length + 1) || indexFile;
	if (name === reloadScript.name) {
		// Also once there is a console: a page that waits for it may have been sent just before.
		return textPage(200, reloadScript.text, {}, "text/javascript; charset=utf-8");
	}
	const files = await loaded.get();
	if (typeof files === "string") {
		const status = statusOf(files);
		const headers = status === 503 ? { "retry-after": String(retrySeconds(files)) } : {};
		return name === indexFile
			? textPage(
					status,
					missingPage(files, files === "not buildable" ? build.output : ""),
					headers,
					"text/html; charset=utf-8",
				)
			: textPage(status, `the console is ${files}`, headers);
	}
	const file = files.get(name);
	return file === undefined
		? textPage(404, "the console has no such file: it may have been built again, load it again")
		: filePage(file, request);
}

/**
 * A console that is being built, or could not be, is unavailable: 503. Browsers show the body of such a response as that of any
 * other, and programs know that there will be a page. No cache stores it: it is sent with `no-store`. With 200, a program or a
 * proxy would take it for the console; with 404, it would stop asking.
 */
function statusOf(missing: MissingConsole): 404 | 503 {
	return missing === "being built" || missing === "not buildable" ? 503 : 404;
}

function filePage(file: ConsoleFile, request: HttpRequest): Page {
	const coding = acceptedCoding(request.header("accept-encoding"), new Set(file.compressed.keys()));
	const body = (coding && file.compressed.get(coding)) ?? file.plain;
	const etag = `"${file.tag}${coding === undefined ? "" : `-${coding}`}"`;
	const headers = {
		"content-type": file.contentType,
		"cache-control": file.isImmutable ? "public, max-age=31536000, immutable" : "no-cache",
		etag,
		...(coding !== undefined && { "content-encoding": coding }),
	};
	return isKnown(request.header("if-none-match"), etag)
		? { status: 304, headers, body: new Uint8Array() }
		: { status: 200, headers: { ...headers, "content-length": String(body.length) }, body };
}

/** Whether a client has this content already. */
function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
	const tags = (ifNoneMatch ?? "").split(",").map((each) => each.trim().replace(/^W\//, ""));
	return tags.includes(etag) || tags.includes("*");
}

function textPage(
	status: number,
	text: string,
	headers: Readonly<Record<string, string>> = {},
	contentType = "text/plain; charset=utf-8",
): Page {
	const body = Buffer.from(text.endsWith("\n") ? text : `${text}\n`);
	return {
		status,
		headers: {
			"content-type": contentType,
			"content-length": String(body.length),
			"cache-control": "no-store",
			...headers,
		},
		body,
	};
}

/** @throws ConnectError if the client is gone, or does not read. */
async function send(
	{ status, headers, body }: Page,
	exchange: Exchange,
	request: HttpRequest,
	response: HttpResponse,
): Promise<void> {
	if (exchange.isClosed) {
		return;
	}
	response.writeHead(status, { ...consoleHeaders, ...headers }, false);
	if (request.method === "HEAD" || body.length === 0) {
		exchange.end();
		return;
	}
	// All responses share the memory of the file: only what was written counts as unread.
	let start = 0;
	for (; body.length - start > pieceBytes; start += pieceBytes) {
		await exchange.write(body.subarray(start, start + pieceBytes));
	}
	exchange.end(body.subarray(start));
}
