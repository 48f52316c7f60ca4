import {
	existsSync,
	mkdirSync,
	mkdtempSync,
	readFileSync,
	rmSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PolicyAuthorizer } from "@plinth/resource-service";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startCinema } from "../cinema-server.fixture.ts";
import { runPlinth } from "../run-plinth.fixture.ts";

let folder: string;
let file: string;
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "plinth-context-"));
	file = join(folder, "plinth", "config.yaml");
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (...args: readonly string[]) => runPlinth(args, { env: { XDG_CONFIG_HOME: folder } });

function tokenFile(token: string): string {
	const path = join(folder, "token");
	writeFileSync(path, `${token}\n`);
	return path;
}

describe("contexts", () => {
	it("are made, listed, chosen and deleted; tokens are kept to the user, and never printed", async () => {
		const path = tokenFile("s3cret");
		const made = await run(
			...["context", "set", "prod", "--server", "https://plinth.example", "--token-file", path],
			...["-p", "eu", "-n", "web", "--ca-file", "/ca.pem"],
		);
		expect(made).toEqual({
			code: 0,
			out: "context prod created; it is now the default\n",
			err: "",
		});
		expect(statSync(file).mode & 0o777).toBe(0o600);
		expect(statSync(join(folder, "plinth")).mode & 0o777).toBe(0o700);
		expect((await run("context", "set", "local", "--server", "127.0.0.1:7575")).out).toBe(
			"context local created; make it the default with: plinth context use local\n",
		);
		const list = await run("context", "list");
		expect(list.out).toBe(`NAME   CURRENT  SERVER                  PARTITION  NAMESPACE  TOKEN
prod   yes      https://plinth.example  eu         web        set
local           http://127.0.0.1:7575   default    default
`);
		for (const format of ["json", "yaml", "name"]) {
			expect((await run("context", "list", "-o", format)).out).not.toContain("s3cret");
		}
		expect((await run("context", "use", "local")).out).toBe("context local is now the default\n");
		expect((await run("context", "delete", "local")).out).toBe("context local deleted\n");
		expect((await run("context", "list", "-o", "name")).out).toBe("prod\n");
		expect(readFileSync(file, "utf8")).toContain("token: s3cret");
	});

	it("that do not exist are named, with the way out", async () => {
		await run("context", "set", "prod", "--server", "http://one:1");
		expect((await run("context", "use", "prd")).err).toBe(
			"plinth: unknown context prd; did you mean prod? Create it with: plinth context set prd --server URL\n",
		);
		expect((await run("context", "delete", "prd")).err).toBe(
			"plinth: unknown context prd; did you mean prod?\n",
		);
	});

	it("are read from the file that PLINTH_CONFIG names, which only `set` creates", async () => {
		const env = { PLINTH_CONFIG: join(folder, "mine.yaml") };
		const missing = await runPlinth(["context", "list"], { env });
		expect(missing).toEqual({
			code: 2,
			out: "",
			err: `plinth: PLINTH_CONFIG: can't read ${env.PLINTH_CONFIG}: no such file (plinth context set creates it)\n`,
		});
		await runPlinth(["context", "set", "a", "--server", "http://one:1"], { env });
		expect((await runPlinth(["context", "list", "-o", "name"], { env })).out).toBe("a\n");
	});

	it("keep what a change says nothing of, but no token for another server", async () => {
		const path = tokenFile("s3cret");
		await run("context", "set", "a", "--server", "http://one:1", "--token-file", path, "-p", "x");
		await run("context", "set", "a", "-n", "y");
		expect(readFileSync(file, "utf8")).toContain("token: s3cret");
		await run("context", "set", "a", "--server", "http://two:2");
		const text = readFileSync(file, "utf8");
		expect(text).not.toContain("s3cret");
		expect(text).toContain("partition: x\n    namespace: y\n");
	});

	it("give what flags and the environment leave out", async () => {
		const authorizer = new PolicyAuthorizer();
		authorizer.grant("good", { subject: "good", rules: [{ operations: ["*"] }] });
		await using server = await startCinema({ authorizer });
		await using other = await startCinema({ authorizer });
		const path = tokenFile("good");
		await run("context", "set", "a", "--server", server.address, "--token-file", path);
		expect(await run("get", "Film")).toMatchObject({ code: 0 });
		// The token is for its own server: another one never sees it.
		expect(await run("get", "Film", "--server", other.address)).toMatchObject({ code: 5 });
		expect(await run("get", "Film", "--server", other.address, "--token", "good")).toMatchObject({
			code: 0,
		});
		await run("context", "set", "b", "--server", other.address);
		expect(await run("get", "Film", "--context", "b")).toMatchObject({ code: 5 });
		const env = { PLINTH_CONFIG: file, PLINTH_CONTEXT: "b", PLINTH_TOKEN: "good" };
		expect(await runPlinth(["get", "Film"], { env })).toMatchObject({ code: 0 });
	});

	it.each([
		[["context", "use", "prdo"], "unknown context prdo"],
		[["context", "set", "x"], "context x requires an address: --server URL"],
		[["context", "set", "x", "--server", "ftp://a"], "ftp://a is not a server address"],
		[["get", "Film", "--server", "http://me:pw@a"], "can't contain a user: set a token"],
		[["get", "Film", "--token", "a", "--token-file", "b"], "can't be used together"],
		[
			["get", "Film", "--token-file", "/nowhere"],
			"can't read the token from /nowhere: no such file",
		],
		[["get", "Film", "--token", "a b"], "has characters that are not allowed in a header"],
		[["get", "Film", "--request-timeout", "5"], '--request-timeout "5" is not a duration'],
		[["get", "Film", "--ca-file", "/nowhere"], "can't read /nowhere"],
	])("refuse %j, and make no file", async (args, message) => {
		const { code, err } = await run(...args);
		expect(err).toContain(message);
		expect(code).toBe(2);
		expect(existsSync(file)).toBe(false);
	});
});

describe("a configuration file", () => {
	const write = (text: string, mode = 0o600) => {
		file = join(folder, "plinth", "config.yaml");
		mkdirSync(dirname(file));
		writeFileSync(file, text, { mode });
	};

	it.each([
		["contexts: {a: {sever: x}}", "contexts.a has no field sever; did you mean server?"],
		["contexts: {a: {token: x}}", "contexts.a.server is required"],
		["contexts: {a: {server: 5}}", "contexts.a.server must be a string"],
		["contexts: []", "contexts must be a mapping"],
		["curent: a", "it has no field curent; did you mean current?"],
		["token: s3cret\n : [", "is not valid YAML: correct or delete it"],
	])("is refused where it says %j", async (text, message) => {
		write(text);
		const { code, err } = await run("get", "Film");
		expect(err).toContain(message);
		expect(err).not.toContain("s3cret");
		expect(code).toBe(2);
	});

	it("is warned of where others may read its tokens", async () => {
		write("contexts: {a: {server: 'http://127.0.0.1:1', token: s3cret}}", 0o644);
		expect((await run("context", "list")).err).toBe(
			`plinth: warning: other users may read the tokens in ${file}; run: chmod 600 ${file}\n`,
		);
	});
});
