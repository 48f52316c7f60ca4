import { spawn } from "node:child_process";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { startCinema } from "./cinema-server.fixture.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { plinthMain } from "./process.fixture.ts";

const hook = fileURLToPath(new URL("./loaded-modules.fixture.ts", import.meta.url));

/** What takes long to load, by a part of its URL. */
const heavy = {
	connect: "/@connectrpc/connect/",
	protobuf: "/@bufbuild/protobuf/",
	resource: "/packages/resource/",
	transport: "/packages/rpc-client/",
	yaml: "/yaml/",
	"string-width": "/string-width/",
	diff: "/diff/",
	http2: "/packages/http2/",
	crypto: "node:crypto",
	fetch: "NativeModule internal/deps/undici/undici",
} as const;

/** The heavy parts that a command line loads, which ends with this exit code. */
async function loaded(code: number, ...args: readonly string[]): Promise<readonly string[]> {
	const folder = await temporaryFolder();
	const child = spawn(process.execPath, ["--import", hook, plinthMain, ...args], {
		env: { ...process.env, XDG_CONFIG_HOME: folder, NODE_DISABLE_COMPILE_CACHE: "1" },
		stdio: ["ignore", "ignore", "pipe", "pipe"],
	});
	onTestFinished(() => void child.kill("SIGKILL"));
	const { stderr } = child;
	const list = child.stdio[3];
	if (stderr === null || !(list instanceof Readable)) {
		throw new Error("the process has no pipes");
	}
	const exited = new Promise((resolve) => child.once("close", resolve));
	const [urls, err] = await Promise.all([text(list), text(stderr)]);
	expect(await exited, err).toBe(code);
	// The list itself works.
	expect(urls).toContain("/commander/");
	expect(urls).toContain("NativeModule fs");
	return Object.entries(heavy).flatMap(([name, part]) => (urls.includes(part) ? [name] : []));
}

const { ok, usage } = exitCodes;

describe("plinth loads only what a command line needs", () => {
	it.each<readonly [ExitCode, readonly string[]]>([
		[ok, ["--help"]],
		[ok, ["--version"]],
		[ok, ["version"]],
		[ok, ["apply", "--help"]],
		[ok, ["completion", "bash"]],
		[ok, ["__complete", "--", "ge"]],
		[ok, ["context", "list"]],
		[usage, ["apply"]],
		[usage, ["types", "--sever", "a"]],
	])("with exit code %i, and nothing heavy: %j", async (code, args) => {
		expect(await loaded(code, ...args)).toEqual([]);
	});

	it("without YAML, the tables of Unicode and fetch, if it prints a table of ASCII", async () => {
		await using server = await startCinema();
		const call = ["get", "Namespace", "--server", server.address, "--token", "a"];
		const ofTable = await loaded(ok, ...call);
		expect(ofTable).toEqual(expect.arrayContaining(["connect", "protobuf", "transport", "http2"]));
		expect(ofTable).not.toContain("yaml");
		expect(ofTable).not.toContain("string-width");
		expect(ofTable).not.toContain("fetch");
		expect(await loaded(ok, ...call, "-o", "yaml")).toContain("yaml");
	});
});
