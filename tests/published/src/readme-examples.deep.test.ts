import { execFile } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import {
	manifestProblems,
	type Published,
	published,
	publishingProblems,
	root,
	typeProblems,
} from "@plinth/release";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const importable = published.filter(({ isImportable }) => isImportable);

/** The first TypeScript program in a README: what a newcomer copies. */
function exampleOf({ folder }: Published): string | undefined {
	const readme = readFileSync(join(folder, "README.md"), "utf8");
	return /```ts\n([\s\S]*?)```/.exec(readme)?.[1];
}

/** The versions of Node that the packages are made for. */
const nodeVersions = ["24", "26"];
/** One that they are not made for. */
const olderNodeVersion = "20";
/** That of this process; the others are npm packages. */
const ownNodeVersion = process.versions.node.split(".")[0];

describe("the packages as they are published, in an empty npm project", () => {
	let project: string;
	let tarballs: Readonly<Record<string, string>>;
	let printed: string;

	beforeAll(async () => {
		project = mkdtempSync(join(tmpdir(), "plinth-published-"));
		// What a release publishes: this builds, packs and checks all packages.
		const release = join(root, "tools/release/src/main.ts");
		const dryRun = [release, "--dry-run", "--output", project];
		printed = (await run(process.execPath, dryRun, { cwd: root })).stdout;
		tarballs = Object.fromEntries(
			published.map(({ name }) => [name, `file:${join(project, tarballOf(name))}`]),
		);
		const nodes = Object.fromEntries(
			[...nodeVersions, olderNodeVersion]
				.filter((version) => version !== ownNodeVersion)
				.map((version) => [`node${version}`, `npm:node@${version}`]),
		);
		writeFileSync(
			join(project, "package.json"),
			JSON.stringify({
				private: true,
				type: "module",
				dependencies: { ...tarballs, ...nodes, "@types/node": "26" },
				overrides: Object.fromEntries(Object.keys(tarballs).map((name) => [name, `$${name}`])),
			}),
		);
		await run("npm", ["install", "--no-audit", "--no-fund"], { cwd: project });
	});

	afterAll(() => rmSync(project, { recursive: true, force: true }));

	it.each([...nodeVersions, olderNodeVersion])("has Node %s at hand", async (version) => {
		const { stdout } = await run(nodeBinary(version), ["--version"]);
		expect(stdout).toMatch(new RegExp(`^v${version}\\.`));
	});

	it("have types that resolve under nodenext, and that the examples agree with", async () => {
		for (const item of importable) {
			writeFileSync(exampleFile(item), exampleOf(item) ?? "");
		}
		writeFileSync(
			join(project, "tsconfig.json"),
			JSON.stringify({
				compilerOptions: {
					module: "nodenext",
					target: "es2024",
					lib: ["esnext", "dom"],
					types: ["node"],
					strict: true,
					noEmit: true,
				},
				files: importable.map(exampleFile),
			}),
		);
		const compiler = join(root, "node_modules/typescript/bin/tsc");
		const { stdout } = await run(process.execPath, [compiler, "-p", project]).catch(
			(failure: { stdout: string }) => failure,
		);
		expect(stdout).toBe("");
	});

	it("are ready to be published, each after those that it needs", () => {
		const names = printed.split("\n").flatMap((line) => /^ {2}(\S+)$/.exec(line)?.[1] ?? []);
		expect([...names].sort()).toEqual(published.map(({ name }) => name).sort());
		for (const { name, needs } of published) {
			for (const needed of needs) {
				expect(names.indexOf(needed)).toBeLessThan(names.indexOf(name));
			}
		}
	});

	it("do not pass publint and attw whatever they contain", async () => {
		const manifest = {
			name: "wrong",
			version: "1.0.0",
			type: "module",
			exports: "./dist/index.js",
		};
		const folder = join(project, "package");
		mkdirSync(folder);
		writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
		writeFileSync(join(folder, "index.d.ts"), "export const a: number;");
		const tarball = join(project, "wrong.tgz");
		await run("tar", ["-czf", tarball, "-C", project, "package"]);
		expect(await publishingProblems(tarball)).toContainEqual(
			expect.stringContaining("the file does not exist"),
		);
		expect(await typeProblems(tarball)).not.toEqual([]);
		expect(await manifestProblems(tarball, new Map())).toEqual([
			"package.json has no license",
			"package.json has no description",
			"package.json does not say which Node.js it needs (engines)",
			"it has no README.md",
			"it has no LICENSE",
		]);
	});

	it("carry no fault that tests can plant", () => {
		const folder = join(project, "node_modules/@plinth/db-constraint");
		const files = globSync("dist/**/*.*", { cwd: folder });
		expect(files).toContain("dist/index.js");
		const faulty = files.filter((file) =>
			/isPlanted|fault-points/.test(readFileSync(join(folder, file), "utf8")),
		);
		expect(faulty).toEqual([]);
	});

	describe.each(published)("$name", (item) => {
		it.each(item.isImportable ? nodeVersions : [])(
			"runs its README's example on Node %s",
			async (version) => {
				const example = exampleOf(item);
				expect(example, `${item.folder}/README.md has no \`\`\`ts block`).toBeDefined();
				const file = exampleFile(item);
				writeFileSync(file, example ?? "");
				const { stdout } = await run(nodeBinary(version), [file], {
					cwd: project,
					timeout: 300_000,
				});
				expect(stdout.trim()).not.toBe("");
			},
		);

		it.each(Object.entries(item.commands))(
			"%s says which Node it needs on an older one",
			async (command, path) => {
				const failure: unknown = await run(nodeBinary(olderNodeVersion), [
					join(project, "node_modules", item.name, path),
				]).catch((error: unknown) => error);
				expect(failure).toMatchObject({
					code: 1,
					stdout: "",
					stderr: expect.stringMatching(
						`^${command} needs Node\\.js 24 or later; this is 20\\.[0-9.]+\\. Install a newer one from https://nodejs\\.org\n$`,
					),
				});
			},
		);
	});

	/** As pnpm names it. */
	function tarballOf(name: string): string {
		return `${name.replace("@", "").replace("/", "-")}-0.1.0.tgz`;
	}

	function exampleFile({ name }: Published): string {
		return join(project, `${name.replace(/\W+/g, "-")}.ts`);
	}

	function nodeBinary(version: string): string {
		return version === ownNodeVersion
			? process.execPath
			: join(project, `node_modules/node${version}/bin/node`);
	}
});
