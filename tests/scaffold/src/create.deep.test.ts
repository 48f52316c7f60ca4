import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "@plinth/test-support/ports";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Registry, startRegistry } from "./registry.fixture.ts";
import { openShell, type Shell } from "./shell.fixture.ts";

const root = join(import.meta.dirname, "../../..");
const name = "my-platform";

/** Packs the packages that a project needs. Returns their tarballs. */
async function packAll(folder: string): Promise<readonly string[]> {
	const wanted = ["create-plinth...", "@plinth/plinth..."].flatMap((each) => ["--filter", each]);
	const { stdout } = await promisify(execFile)(
		"pnpm",
		[...wanted, "pack", "--json", "--pack-destination", folder],
		{ cwd: root, maxBuffer: 2 ** 26 },
	);
	const packed: readonly { readonly filename: string }[] = JSON.parse(
		stdout.slice(stdout.indexOf("[")),
	);
	return packed.map(({ filename }) => filename);
}

interface ServerOptions {
	readonly environment?: Readonly<Record<string, string>>;
	/** Called with the address of the server. */
	readonly whileItRuns: (address: string) => Promise<void>;
}

/** One project, created once: the tests follow each other. */
describe("npm create plinth", () => {
	let temporary: string;
	let project: string;
	let registry: Registry;
	/** By version of Node, a shell in the folder of the project. */
	const shells = new Map<string, Shell>();
	const shell = (version: string): Shell => {
		const found = shells.get(version);
		if (found === undefined) {
			throw new Error(`no shell for Node ${version}`);
		}
		return found;
	};

	beforeAll(async () => {
		temporary = mkdtempSync(join(tmpdir(), "plinth-create-"));
		project = join(temporary, "empty", name);
		const folders = ["registry", "tarballs", "home", "empty", "node24"].map((each) =>
			join(temporary, each),
		);
		for (const folder of folders) {
			mkdirSync(folder);
		}
		registry = await startRegistry(join(temporary, "registry"));
		for (const tarball of await packAll(join(temporary, "tarballs"))) {
			await registry.publish(tarball);
		}
		const settings = { registry: registry.url, home: join(temporary, "home") };
		const own = { ...settings, node: process.execPath };
		shells.set("empty", openShell(join(temporary, "empty"), own));
		shells.set("26", openShell(project, own));
		const folder = join(temporary, "node24");
		shells.set(
			"24",
			openShell(project, { ...settings, node: join(folder, "node_modules/node/bin/node") }),
		);
	});

	afterAll(async () => {
		await registry?.[Symbol.asyncDispose]();
		rmSync(temporary, { recursive: true, force: true });
	});

	it("creates a project in an empty folder, with nothing in npm's cache", async () => {
		const output = await shell("empty").run(`npm create plinth@latest ${name}`);
		expect(output).toContain("npx plinth apply -f resources/site.yaml");
		for (const path of ["package-lock.json", ".git", `src/gen/my_platform/v1/site_pb.ts`]) {
			expect(existsSync(join(project, path)), path).toBe(true);
		}
		// The versions in the lockfile are those of package.json: nothing was changed to install them.
		expect(await shell("26").run("npm ls --depth=0")).toContain("typescript@");
		expect(await shell("26").run("git status --porcelain")).not.toMatch(
			/node_modules|src\/gen|dist/,
		);
	});

	it("has another Node at hand", async () => {
		const install = "npm install --no-audit --no-fund --prefix ../../node24 node@24";
		await shell("26").run(install);
		expect(await shell("24").run("node --version")).toMatch(/^v24\./);
		expect(await shell("26").run("node --version")).toMatch(/^v26\./);
	});

	it.each(["npm test", "npm run check", "npm run build"])("%s succeeds", async (command) => {
		await shell("26").run(command);
	});

	it("npm test succeeds on Node 24", async () => {
		await shell("24").run("npm test");
	});

	it.each(["26", "24"])("npm start runs what was built, on Node %s", async (version) => {
		await reconciles(version, "npm start");
	});

	it("npm run dev serves the project, and plinth generate adds to it", async () => {
		await shell("26").run("npx plinth generate type Zone --references Site:block");
		await shell("26").run("npx plinth generate controller ZonePlanner --manages Zone");
		await serves("26", "npm run dev", {
			whileItRuns: async (address) => {
				const types = await shell("26").run(`npx plinth types --server http://${address}`);
				expect(types).toContain("my_platform.v1.Zone");
			},
		});
		await shell("26").run("npm test");
	});

	it("runs as in its image: without development dependencies, as configured there", async () => {
		await shell("26").run("npm prune --omit=dev");
		const [check, command] = imageCommands();
		await serves("26", command, {
			environment: { PLINTH_MODULES: "./dist/module.js" },
			whileItRuns: async (address) => {
				const port = address.slice(address.indexOf(":") + 1);
				await shell("26").run(check.replace("7575", port));
				await expect(shell("26").run(check.replace("7575", "1"))).rejects.toThrow("exited with 1");
			},
		});
	});

	/** The health check and the command of the Dockerfile, for a shell. */
	function imageCommands(): readonly [string, string] {
		const dockerfile = readFileSync(join(project, "Dockerfile"), "utf8");
		const [check = "", command = ""] = [...dockerfile.matchAll(/CMD (?<list>\[.*\])$/gm)].map(
			({ groups }) => {
				const words: readonly string[] = JSON.parse(groups?.list ?? "");
				return words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
			},
		);
		return [check, command];
	}

	/** Starts a server, and stops it in the end. */
	async function serves(
		version: string,
		command: string,
		{ environment: variables = {}, whileItRuns }: ServerOptions,
	): Promise<void> {
		const address = `127.0.0.1:${await freePort()}`;
		const environment = {
			...variables,
			PLINTH_LISTEN: address,
			PLINTH_DATA_DIR: mkdtempSync(join(temporary, "data-")),
		};
		await using server = shell(version).start(command, { environment });
		await server.printed(`http://${address}`);
		await whileItRuns(address);
	}

	/** Starts a server, applies the resource and waits until the controller has reached it. */
	async function reconciles(version: string, command: string): Promise<void> {
		await serves(version, command, {
			whileItRuns: async (address) => {
				const file = join(project, "resources/site.yaml");
				const text = readFileSync(file, "utf8");
				writeFileSync(file, text.replace(/127\.0\.0\.1:\d+/, address));
				const client = { environment: { PLINTH_SERVER: `http://${address}` } };
				const run = (line: string) => shell(version).run(line, client);
				expect(await run("npx plinth apply -f resources/site.yaml")).toContain("created");
				await run("npx plinth wait Site plinth --for=condition=Reachable");
				expect(await run("npx plinth get Site plinth")).toContain("Reachable=True");
			},
		});
	}
});
