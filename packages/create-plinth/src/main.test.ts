import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const main = join(import.meta.dirname, "main.ts");

let folder: string;

beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "create-plinth-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Runs the command in the folder; `npm` is a script with this text, which also prints what it is called with. */
function create(args: readonly string[], npm = "") {
	const programs = join(folder, ".programs");
	mkdirSync(programs, { recursive: true });
	writeFileSync(join(programs, "npm"), `#!/bin/sh\necho "npm $*"\n${npm}\n`, { mode: 0o755 });
	const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
		cwd: folder,
		encoding: "utf8",
		env: environmentWith(programs),
	});
	return { status, stdout, stderr };
}

/** The environment of a terminal in which the programs of a folder come first. */
function environmentWith(programs: string): NodeJS.ProcessEnv {
	// Names the package manager that runs these tests.
	const { npm_config_user_agent: _, ...environment } = process.env;
	return {
		...environment,
		PATH: [programs, process.env.PATH].join(delimiter),
		// The folder is in no repository, wherever the folder of temporary files is.
		GIT_CEILING_DIRECTORIES: tmpdir(),
	};
}

describe("create-plinth", () => {
	it("creates, installs, generates, and says what to do next", () => {
		expect(create(["my-platform"])).toEqual({
			status: 0,
			stderr: "",
			stdout: `my-platform: 20 files in ${folder}/my-platform
created a git repository
installing dependencies with npm…
npm install --no-audit --no-fund
generated src/gen from the protos

Start the server:
  cd my-platform
  npm run dev

In a second terminal, declare a site, and wait until the controller has reached it:
  cd my-platform
  npx plinth apply -f resources/site.yaml
  npx plinth wait Site plinth --for=condition=Reachable

README.md has all commands, and what each file is for.
`,
		});
		expect(existsSync(join(folder, "my-platform/.git"))).toBe(true);
	});

	it("leaves out what it is asked to", () => {
		const { status, stdout } = create(["shop", "--no-install", "--no-git"]);
		expect(status).toBe(0);
		expect(stdout).not.toContain("git repository");
		expect(stdout).toContain(`Start the server:
  cd shop
  npm install
  npm run generate
  npm run dev
`);
		expect(readdirSync(join(folder, "shop"))).not.toContain(".git");
	});

	it("creates no repository inside of another one", () => {
		create(["one"]);
		const { stdout } = create(["one/apps/two"]);
		expect(stdout).not.toContain("git repository");
		expect(stdout).toContain("cd one/apps/two\n");
	});

	it.each([
		["installed", "exit 1"],
		["generated", '[ "$1" = install ] || exit 1'],
	])("says how to go on if it could not be %s", (_, npm) => {
		const { status, stderr } = create(["shop"], npm);
		expect(status).toBe(1);
		expect(stderr).toBe(`
create-plinth: the project was created, but not set up completely. To finish:
  cd shop
  npm install
  npm run generate
To start over, delete ${folder}/shop
`);
	});

	it("says how to go on if its installation is interrupted", async () => {
		const programs = join(folder, ".programs");
		mkdirSync(programs);
		writeFileSync(join(programs, "npm"), "#!/bin/sh\nexec sleep 600\n", { mode: 0o755 });
		const child = spawn(process.execPath, [main, "shop", "--no-git"], {
			cwd: folder,
			// A group of its own, which gets the signal as that of a terminal does.
			detached: true,
			stdio: ["ignore", "pipe", "pipe"],
			env: environmentWith(programs),
		});
		const output: string[] = [];
		const { promise: installing, resolve } = Promise.withResolvers<void>();
		for (const stream of [child.stdout, child.stderr]) {
			stream.setEncoding("utf8").on("data", (text: string) => {
				output.push(text);
				if (text.includes("installing dependencies")) {
					resolve();
				}
			});
		}
		const ended = once(child, "close");
		await Promise.race([installing, ended]);
		process.kill(-(child.pid ?? 0), "SIGINT");
		expect(await ended).toEqual([1, null]);
		expect(output.join("")).toContain("To finish:\n  cd shop\n  npm install\n");
	});

	it("refuses a folder that is not empty", () => {
		expect(create([".programs"]).stderr).toContain(`".programs" can't be the name of a project`);
		mkdirSync(join(folder, "shop"));
		writeFileSync(join(folder, "shop/notes.txt"), "");
		expect(create(["shop"])).toEqual({
			status: 1,
			stdout: "",
			stderr:
				"create-plinth: shop is not empty, it contains notes.txt: choose another folder, or empty this one\n",
		});
	});

	it("refuses flags that it does not have", () => {
		expect(create(["shop", "--force"])).toEqual({
			status: 2,
			stdout: "",
			stderr:
				"create-plinth: unknown flag --force: there are --no-install, --no-git, --package-manager, --help, --version (--help lists all flags)\n",
		});
		expect(readdirSync(folder)).toEqual([".programs"]);
	});

	it("has help, and a version", () => {
		expect(create(["--help"]).stdout).toContain("npm create plinth@latest FOLDER\n");
		expect(create(["--version"]).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
	});

	it.each(["--help", "shop --no-install --no-git"])(
		"fails if the output of %s can't be written",
		(args) => {
			const { status, stderr } = spawnSync(
				"bash",
				["-c", `"${process.execPath}" "${main}" ${args} > /dev/full`],
				{ cwd: folder, encoding: "utf8" },
			);
			expect({ status, stderr }).toEqual({
				status: 1,
				stderr: "create-plinth: can't write to standard output: no space left on device\n",
			});
			expect(existsSync(join(folder, "shop/package.json"))).toBe(args.startsWith("shop"));
		},
	);
});
