import { execFile } from "node:child_process";
import { cpSync, globSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { packAll, root } from "@plinth/release";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);

/** What an application depends on, beside @plinth/plinth. */
const protobuf = "@bufbuild/protobuf";
const currentProtobuf = "2.17.0";
/** The code that Plinth is generated with needs a later one. */
const olderProtobuf = "2.16.0";

type PackageManager = "npm" | "pnpm";

const installs: Readonly<Record<PackageManager, readonly string[]>> = {
	npm: ["install", "--no-audit", "--no-fund"],
	pnpm: ["install", "--no-frozen-lockfile"],
};

const scoped = "node_modules/@{plinth,bufbuild}/*/package.json";

/** What the compiler of the workspace prints. */
async function compile(configuration: string, options: readonly string[] = []): Promise<string> {
	const compiler = join(root, "node_modules/typescript/bin/tsc");
	const { stdout } = await run(process.execPath, [
		...[compiler, "-p", configuration],
		...options,
	]).catch((failure: { stdout: string }) => failure);
	return stdout;
}

describe("an application that depends on @plinth/plinth and @bufbuild/protobuf alone", () => {
	let temporary: string;
	let tarballs: Readonly<Record<string, string>>;

	beforeAll(async () => {
		temporary = mkdtempSync(join(tmpdir(), "plinth-application-"));
		tarballs = await packAll(temporary);
	});

	afterAll(() => rmSync(temporary, { recursive: true, force: true }));

	describe.each<PackageManager>(["npm", "pnpm"])("installed by %s", (packageManager) => {
		let project: string;

		beforeAll(async () => {
			project = createProject(packageManager, currentProtobuf);
			await run(packageManager, installs[packageManager], { cwd: project });
			// With the plugin that was installed.
			const path = `${join(project, "node_modules/.bin")}${delimiter}${process.env.PATH}`;
			await run("buf", ["generate"], { cwd: project, env: { ...process.env, PATH: path } });
		});

		it("has each package once", () => {
			const manifests = globSync(
				["**/", "node_modules/.pnpm/*/"].map((each) => `${each}${scoped}`),
				{
					cwd: project,
				},
			).map((path) => realpathSync(join(project, path)));
			const names = [...new Set(manifests)].map((path) => path.split("/").slice(-3, -1).join("/"));
			expect(names).toContain(protobuf);
			expect(names).toContain("@plinth/resource");
			expect(names.sort()).toEqual([...new Set(names)]);
		});

		it("is checked by the compiler, generated code included", async () => {
			expect(await compile(project)).toBe("");
		});

		it("can be compiled to a package with declarations", async () => {
			expect(await compile(join(project, "tsconfig.build.json"), ["--declaration"])).toBe("");
		});

		it("runs its tests", async () => {
			const { stdout } = await run(process.execPath, ["--test", "src/**/*.test.ts"], {
				cwd: project,
			});
			expect(stdout).toMatch(/pass [1-9]/);
		});
	});

	it("is not installed by npm with another version of @bufbuild/protobuf beside that of Plinth", async () => {
		const project = createProject("npm", olderProtobuf);
		const failure: unknown = await run("npm", [...installs.npm, "--package-lock-only"], {
			cwd: project,
		}).catch((error: unknown) => error);
		expect(failure).toMatchObject({ stderr: expect.stringContaining("ERESOLVE") });
		expect(failure).toMatchObject({ stderr: expect.stringContaining(`peer ${protobuf}@`) });
	});

	/** The project of `npm create plinth`, with the packed packages. */
	function createProject(packageManager: PackageManager, version: string): string {
		const project = mkdtempSync(join(temporary, `${packageManager}-`));
		cpSync(join(root, "packages/scaffold/template"), project, { recursive: true });
		const manifest = {
			...{ name: "my-platform", private: true, type: "module" },
			dependencies: { "@plinth/plinth": tarballs["@plinth/plinth"], [protobuf]: version },
			devDependencies: { "@types/node": "26" },
			overrides: packageManager === "npm" ? tarballs : {},
		};
		writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
		if (packageManager === "pnpm") {
			writeFileSync(
				join(project, "pnpm-workspace.yaml"),
				JSON.stringify({ packages: [], overrides: tarballs }),
			);
		}
		return project;
	}
});
