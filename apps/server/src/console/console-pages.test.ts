import { once } from "node:events";
import { mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { request as http1 } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { silentLogger } from "@plinth/runtime";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { echoRouter } from "../listener/echo-router.fixture.ts";
import { startListener } from "../started-listener.fixture.ts";
import { startServer } from "../started-server.fixture.ts";
import { ConsoleBuildProcess } from "./console-build.ts";
import { createConsolePages } from "./console-pages.ts";

/** Larger than what is written at once. */
const script = `console.log(${JSON.stringify("console ".repeat(40_000))});`;
const asset = "assets/index-abc123.js";

async function builtFolder(): Promise<string> {
	const folder = await temporaryFolder();
	build(folder, "<!doctype html><title>Plinth</title>");
	return folder;
}

function build(folder: string, index: string): void {
	mkdirSync(join(folder, "assets"), { recursive: true });
	for (const [name, text] of [
		["index.html", index],
		[asset, script],
	] as const) {
		writeFileSync(join(folder, name), text);
		writeFileSync(join(folder, `${name}.br`), brotliCompressSync(text));
		writeFileSync(join(folder, `${name}.gz`), gzipSync(text));
	}
}

interface Reply {
	readonly status: number;
	readonly headers: Readonly<Record<string, string | string[] | undefined>>;
	readonly body: Buffer;
}

/** Sends a request whose path is not normalized. */
type Send = (
	path: string,
	headers?: Readonly<Record<string, string>>,
	method?: string,
) => Promise<Reply>;

function overHttp1(address: string): Send {
	return (path, headers = {}, method = "GET") =>
		new Promise((resolve, reject) => {
			const { port } = new URL(address);
			const sent = http1({ port, host: "127.0.0.1", path, method, headers, agent: false });
			sent.on("error", reject);
			sent.on("response", async (response) => {
				const body = await buffer(response);
				resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
			});
			sent.end();
		});
}

function overHttp2(address: string): Send {
	const session = connectHttp2(address);
	onTestFinished(() => session.destroy());
	return (path, headers = {}, method = "GET") =>
		new Promise((resolve, reject) => {
			const stream = session.request({ ...headers, ":path": path, ":method": method });
			stream.on("error", reject);
			stream.on("response", async (received) => {
				const { ":status": status = 0, ...rest } = received;
				resolve({ status, headers: rest, body: await buffer(stream) });
			});
			stream.end();
		});
}

const ways = [
	["HTTP/1.1", overHttp1, "node"],
	["HTTP/2 of node", overHttp2, "node"],
	["HTTP/2 of plinth", overHttp2, "plinth"],
] as const;

describe.each(ways)("the console over %s", (_name, over, http2) => {
	async function start(folder: string | undefined, buildProgram?: string): Promise<Send> {
		const build = new ConsoleBuildProcess(silentLogger);
		onTestFinished(() => build.stop());
		const pages = createConsolePages({
			installed: async () =>
				folder === undefined ? undefined : { folder, ...(buildProgram && { buildProgram }) },
			build,
			logger: silentLogger,
		});
		const { address } = await startListener(echoRouter({}), { pages, http2 });
		return over(address);
	}

	it("is a page that is checked for changes each time", async () => {
		const send = await start(await builtFolder());
		const { status, headers, body } = await send("/console/");
		expect([status, body.toString()]).toEqual([200, "<!doctype html><title>Plinth</title>"]);
		expect(headers).toMatchObject({
			"content-type": "text/html; charset=utf-8",
			"cache-control": "no-cache",
			"x-content-type-options": "nosniff",
			"referrer-policy": "no-referrer",
		});
		const known = await send("/console/", { "if-none-match": String(headers.etag) });
		expect([known.status, known.body.length]).toEqual([304, 0]);
		expect((await send("/console/", { "if-none-match": '"other"' })).status).toBe(200);
	});

	it("allows scripts and styles of its own only, and no frames", async () => {
		const send = await start(await builtFolder());
		for (const path of ["/console/", `/console/${asset}`, "/console/missing", "/console"]) {
			const policy = String((await send(path)).headers["content-security-policy"]);
			expect(policy).toContain("default-src 'none'");
			expect(policy).toContain("frame-ancestors 'none'");
			expect(policy).not.toMatch(/unsafe|https?:|\*|data:/);
		}
	});

	it("has files that are cached forever, in the coding that the client accepts", async () => {
		const send = await start(await builtFolder());
		const plain = await send(`/console/${asset}`);
		expect(plain.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
		expect(plain.headers["content-type"]).toBe("text/javascript; charset=utf-8");
		expect(plain.headers.vary).toContain("Accept-Encoding");
		expect(plain.body.toString()).toBe(script);
		const tags = new Set([plain.headers.etag]);
		for (const [coding, decompress] of [
			["br", brotliDecompressSync],
			["gzip", gunzipSync],
		] as const) {
			const reply = await send(`/console/${asset}`, { "accept-encoding": coding });
			expect(reply.headers["content-encoding"]).toBe(coding);
			expect(decompress(reply.body).toString()).toBe(script);
			tags.add(reply.headers.etag);
		}
		expect(tags.size).toBe(3);
	});

	it("sends the same head to HEAD, and no body", async () => {
		const send = await start(await builtFolder());
		const [get, head] = [await send("/console/"), await send("/console/", {}, "HEAD")];
		expect(head.body.length).toBe(0);
		for (const name of ["content-length", "content-type", "etag", "cache-control"]) {
			expect(head.headers[name]).toBe(get.headers[name]);
		}
	});

	it("refuses other methods", async () => {
		const send = await start(await builtFolder());
		for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"]) {
			const { status, headers } = await send("/console/", {}, method);
			expect([method, status, headers.allow]).toEqual([method, 405, "GET, HEAD"]);
		}
	});

	it("leads from its path without a slash to the page, also below a prefix", async () => {
		const send = await start(await builtFolder());
		const { status, headers } = await send("/console?a=b");
		expect([status, headers.location]).toEqual([308, "console/"]);
		expect(new URL("console/", "https://proxy.example/plinth/console").pathname).toBe(
			"/plinth/console/",
		);
	});

	it("has no files but those of its folder", async () => {
		const folder = await builtFolder();
		writeFileSync(join(folder, "..secret.html"), "secret");
		writeFileSync(join(folder, "notes.txt"), "secret");
		symlinkSync("/etc/hostname", join(folder, "linked.html"));
		const send = await start(folder);
		for (const path of [
			"/console/../console/index.html",
			"/console/../../../../etc/passwd",
			"/console/..%2f..%2fetc/passwd",
			"/console/%2e%2e/%2e%2e/etc/passwd",
			"/console/....//etc/passwd",
			"/console//etc/passwd",
			"/console/..\\..\\etc\\passwd",
			"/console/assets/",
			"/console/assets/../index.html",
			"/console/index.html%00.js",
			"/console/index.html.br",
			"/console/notes.txt",
			"/console/linked.html",
			"/console/constructor",
			"/console/__proto__",
			"/consoles/index.html",
		]) {
			const { status, body } = await send(path);
			expect([path, status]).toEqual([path, 404]);
			expect(body.toString()).not.toContain("secret");
		}
	});

	it("says how to build it when it is not built, and is there once it is", async () => {
		const folder = join(await temporaryFolder(), "page");
		const send = await start(folder);
		const missing = await send("/console/");
		expect(missing.status).toBe(404);
		expect(missing.body.toString()).toContain("--filter @plinth/console build");
		expect((await send(`/console/${asset}`)).body.toString()).toBe("the console is not built\n");
		build(folder, "built");
		expect((await send("/console/")).body.toString()).toBe("built");
		build(folder, "built again");
		utimesSync(join(folder, "index.html"), 1, 1);
		expect((await send("/console/")).body.toString()).toBe("built again");
		rmSync(folder, { recursive: true });
		expect((await send("/console/")).status).toBe(404);
	});

	it("builds it once it is asked for, says so meanwhile, and is there afterwards", async () => {
		const root = await temporaryFolder();
		const [folder, program, go] = [join(root, "page"), join(root, "build.mjs"), join(root, "go")];
		writeFileSync(
			program,
			`import { existsSync, mkdirSync, writeFileSync } from "node:fs";
			while (!existsSync(${JSON.stringify(go)})) await new Promise((then) => setTimeout(then, 10));
			mkdirSync(${JSON.stringify(folder)});
			writeFileSync(${JSON.stringify(join(folder, "index.html"))}, "built");`,
		);
		const send = await start(folder, program);
		for (let twice = 0; twice < 2; twice += 1) {
			const { status, headers, body } = await send("/console/");
			expect([status, body.toString()]).toEqual([503, expect.stringContaining("is being built")]);
			expect(headers).toMatchObject({ "retry-after": "1", "cache-control": "no-store" });
			expect(body.toString()).toContain('src="reload.js" data-seconds="1"');
			const script = await send("/console/reload.js");
			expect([script.status, script.body.toString()]).toEqual([
				200,
				expect.stringContaining("location.reload()"),
			]);
			const file = await send(`/console/${asset}`);
			expect([file.status, file.headers["retry-after"]]).toEqual([503, "1"]);
		}
		writeFileSync(go, "");
		await expect.poll(async () => (await send("/console/")).body.toString()).toBe("built");
		expect((await send("/console/")).status).toBe(200);
		// A page that says so may have been sent just before.
		expect((await send("/console/reload.js")).status).toBe(200);
	});

	it("says why it could not be built, and does not try that again", async () => {
		const root = await temporaryFolder();
		const program = join(root, "build.mjs");
		writeFileSync(program, `console.error("no <b>vite</b>"); process.exitCode = 3;`);
		const send = await start(join(root, "page"), program);
		const text = async () => (await send("/console/")).body.toString();
		await expect.poll(text).toContain("could not be built");
		expect(await text()).toContain("no &lt;b>vite&lt;/b>\n\nit ended with code 3");
		expect(await text()).toContain("--filter @plinth/console build");
		const { status, headers } = await send("/console/");
		expect([status, headers["cache-control"]]).toEqual([503, "no-store"]);
		rmSync(program);
		expect(await text()).toContain("could not be built");
	});

	it("says how to install it when it is not installed", async () => {
		const { status, body } = await (await start(undefined))("/console/");
		expect(status).toBe(404);
		expect(body.toString()).toContain("npm install @plinth/console");
	});

	it("reports files that can't be read, and reads them again", async () => {
		const folder = await builtFolder();
		for (let at = 0; at <= 1_000; at += 1) {
			writeFileSync(join(folder, `${at}.js`), "");
		}
		const send = await start(folder);
		expect((await send("/console/")).status).toBe(500);
		for (let at = 0; at <= 1_000; at += 1) {
			rmSync(join(folder, `${at}.js`));
		}
		expect((await send("/console/")).status).toBe(200);
	});
});

describe.each(["node", "plinth"] as const)("the console over HTTP/2 of %s", (http2) => {
	it("counts only written bytes as unread, of which a client that does not read has 64 KiB", async () => {
		const folder = await builtFolder();
		const pages = createConsolePages({
			installed: async () => ({ folder }),
			build: new ConsoleBuildProcess(silentLogger),
			logger: silentLogger,
		});
		const { address, exchanges } = await startListener(echoRouter({}), { pages, http2 });
		const session = connectHttp2(address, { settings: { initialWindowSize: 0 } });
		onTestFinished(() => session.destroy());
		const stream = session.request({ ":path": `/console/${asset}` });
		await once(stream, "response");
		await expect.poll(() => exchanges.pendingBytes).toBe(64 * 1024);
		stream.destroy();
		await expect.poll(() => [exchanges.open, exchanges.pendingBytes]).toEqual([0, 0]);
	});
});

describe("a server", () => {
	it("serves the console, unless it is turned off", async () => {
		const on = await startServer();
		const { headers } = await fetch(`${on.address}/console`, { redirect: "manual" });
		expect(headers.get("location")).toBe("console/");
		const off = await startServer({ console: false });
		for (const path of ["/console", "/console/"]) {
			const { status, headers: none } = await fetch(`${off.address}${path}`);
			expect([path, status, none.has("content-security-policy")]).toEqual([path, 404, false]);
		}
	});
});
