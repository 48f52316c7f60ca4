import { execFile } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { packAll } from "@plinth/release";
import { createServer, type Server } from "@plinth/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);

/** Writes the URL of each module that a program loads to its standard error, at its end. */
const hook = `import { registerHooks } from "node:module";
const urls = [];
registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
process.on("exit", () => console.error(urls.join("\\n")));
`;

/** A program with a command of its own, which uses packages that @plinth/cli contains a copy of. */
const program = `import { isMessage, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { processIo, runCommandLine } from "@plinth/cli";
import { Argument, Option } from "commander";
import { ResourceSchema, ResourceService } from "@plinth/proto";
import { idOf, Namespace } from "@plinth/resource";

const addPeek = (program, run) => {
	program
		.command("peek")
		.addArgument(new Argument("<name>", "name of a namespace"))
		.addOption(new Option("--as <form>", "form").choices(["name", "size"]).default("name"))
		.action((name, { as }) => run((session) => peek(session, name, as)));
};

async function peek(session, name, as) {
	const { connection } = await session.server();
	const resources = connection.client(ResourceService);
	const id = idOf(Namespace, name, { partition: "default" });
	try {
		const { resource } = await resources.read({ id });
		const text = as === "size" ? String(toBinary(ResourceSchema, resource).length) : resource.id.name;
		session.io.out(isMessage(resource, ResourceSchema) ? text : "no message");
	} catch (error) {
		session.io.out(error instanceof ConnectError ? Code[error.code] : "no ConnectError");
	}
	return 0;
}

process.exitCode = await runCommandLine(process.argv.slice(2), processIo(), [addPeek]);
`;

describe("@plinth/cli as it is published, installed alone", () => {
	let temporary: string;
	let project: string;
	let server: Server;
	let dist: string;

	beforeAll(async () => {
		temporary = mkdtempSync(join(tmpdir(), "plinth-command-line-"));
		const tarballs = await packAll(temporary);
		project = mkdtempSync(join(temporary, "project-"));
		dist = join(project, "node_modules/@plinth/cli/dist");
		const manifest = {
			...{ private: true, type: "module" },
			dependencies: { "@plinth/cli": tarballs["@plinth/cli"] },
			overrides: tarballs,
		};
		writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
		writeFileSync(join(project, "hook.js"), hook);
		writeFileSync(join(project, "program.js"), program);
		await run("npm", ["install", "--no-audit", "--no-fund"], { cwd: project });
		server = createServer({
			storage: { kind: "memory" },
			listen: { host: "127.0.0.1", port: 0 },
		});
		await server.start();
	});

	afterAll(async () => {
		await server?.stop();
		rmSync(temporary, { recursive: true, force: true });
	});

	/** Runs a command line to its end. Its server is that of the test. */
	function plinth(args: readonly string[], options: readonly string[] = []) {
		return run(
			process.execPath,
			[...options, join(dist, "main.js"), ...args, "--server", server.address],
			{ cwd: project, env: { ...process.env, XDG_CONFIG_HOME: project } },
		);
	}

	/** The modules that a command line loads: of each package, the paths of the files. */
	async function loadedBy(args: readonly string[]): Promise<Readonly<Record<string, string[]>>> {
		const { stderr } = await plinth(args, ["--import", join(project, "hook.js")]);
		const files = stderr.split("\n").flatMap((url) => {
			const [, name, path] = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/([^\n]+)$/.exec(url) ?? [];
			return name === undefined || path === undefined ? [] : [{ name, path }];
		});
		return Object.fromEntries(
			[...Map.groupBy(files, ({ name }) => name)].map(([name, all]) => [
				name,
				all.map(({ path }) => path),
			]),
		);
	}

	it("applies and prints resources, also in letters that are not ASCII", async () => {
		const file = join(project, "namespace.yaml");
		writeFileSync(file, "type: tenancy.v1.Namespace\nname: kino\ndata: { description: 映画 }\n");
		expect((await plinth(["apply", "-f", file])).stdout).toContain("created");
		expect((await plinth(["get", "Namespace"])).stdout).toMatch(/^kino +映画 /m);
		expect((await plinth(["get", "Namespace", "kino", "-o", "yaml"])).stdout).toContain(
			"description: 映画",
		);
		expect((await plinth(["diff", "-f", file])).stdout).toBe("");
	});

	it("loads files of its own instead of the packages that it contains", async () => {
		for (const args of [
			["--help"],
			["get", "Namespace", "-o", "json"],
			["get", "Namespace", "default", "-o", "yaml"],
			["describe", "Namespace", "default"],
			["history", "Namespace", "default"],
			["top", "--once"],
		]) {
			const packages = Object.keys(await loadedBy(args));
			expect(packages, args.join(" ")).toEqual(["@plinth/cli"]);
		}
	});

	it("has the code for calls and for YAML once, and loads it only when a command needs it", async () => {
		const parts = {
			calls: "google.protobuf.FieldDescriptorProto",
			yaml: "tag:yaml.org,2002:",
		};
		const codeOf = (path: string) => readFileSync(join(dist, path), "utf8");
		const partsOf = async (...args: readonly string[]) => {
			const { "@plinth/cli": files = [] } = await loadedBy(args);
			const code = files.map((path) => codeOf(path.replace(/^dist\//, ""))).join("\n");
			return Object.entries(parts).flatMap(([name, text]) => (code.includes(text) ? [name] : []));
		};
		for (const text of Object.values(parts)) {
			const files = globSync("**/*.js", { cwd: dist }).filter((file) =>
				codeOf(file).includes(text),
			);
			expect(files, text).toHaveLength(1);
		}
		expect(await partsOf("--help")).toEqual([]);
		expect(await partsOf("completion", "bash")).toEqual([]);
		expect(await partsOf("get", "Namespace")).toEqual(["calls"]);
		expect(await partsOf("get", "Namespace", "-o", "yaml")).toEqual(["calls", "yaml"]);
	});

	it("gives a command of a program messages and errors that it can use with its own packages", async () => {
		const peek = (...args: readonly string[]) =>
			run(
				process.execPath,
				[join(project, "program.js"), "peek", ...args, "--server", server.address],
				{ cwd: project },
			);
		expect((await peek("default")).stdout).toBe("default");
		expect((await peek("default", "--as", "size")).stdout).toMatch(/^\d+$/);
		expect((await peek("none")).stdout).toBe("NotFound");
		await expect(peek("default", "--as", "xml")).rejects.toMatchObject({
			code: 2,
			stderr: expect.stringContaining("must be one of name, size"),
		});
	});

	it("has source maps: a stack trace names the file and the line of the source", async () => {
		const code =
			'import("@plinth/cli").then(({ runCommandLine }) => runCommandLine(["version"], {}))';
		const failure: unknown = await run(process.execPath, ["--enable-source-maps", "-e", code], {
			cwd: project,
		}).catch((error: unknown) => error);
		expect(failure).toMatchObject({ stderr: expect.stringMatching(/\/src\/program\.ts:\d+:\d+/) });
	});

	it("contains the licenses of what it contains", () => {
		const notices = readFileSync(join(dist, "third-party-notices.txt"), "utf8");
		for (const name of ["@bufbuild/protobuf", "@connectrpc/connect", "diff", "leven", "yaml"]) {
			expect(notices).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+: `, "m"));
		}
	});
});
