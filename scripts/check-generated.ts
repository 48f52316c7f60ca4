/**
 * Fails if generated code is stale. Every `buf.gen*.yaml` below the root is run into a temporary folder, and each
 * folder that its plugins write to is compared with what is committed there, file by file. A template that
 * generates nothing fails too: it would let everything pass.
 *
 *     node scripts/check-generated.ts [--root <folder>]
 */
import { spawn } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { parse } from "yaml";

/** A file that tells buf what to generate. */
interface Template {
	/** The folder where buf runs. */
	readonly folder: string;
	readonly file: string;
	/** What its plugins write to, relative to the folder. */
	readonly outputs: readonly string[];
}

/** The template of new projects, which commits no generated code. */
const projectTemplate = "packages/scaffold/template/";

function templatesIn(root: string): readonly Template[] {
	const paths = globSync("**/buf.gen*.yaml", {
		cwd: root,
		exclude: (name) => name === "node_modules",
	}).filter((path) => !path.startsWith(projectTemplate));
	return paths.sort().map((path) => {
		const outputs = outputsOf(parse(readFileSync(join(root, path), "utf8")));
		if (outputs.length === 0) {
			throw new Error(`${path} names no plugin with an output folder`);
		}
		return { folder: join(root, dirname(path)), file: basename(path), outputs };
	});
}

function outputsOf(template: unknown): readonly string[] {
	const plugins: unknown = Object(template).plugins;
	const outputs = Array.isArray(plugins) ? plugins.map((plugin): unknown => plugin?.out) : [];
	return [...new Set(outputs.filter((output) => typeof output === "string"))];
}

/** What is wrong with the committed output of one template, a line each. */
async function problemsOf(template: Template): Promise<readonly string[]> {
	const { folder, file, outputs } = template;
	const temporary = mkdtempSync(join(tmpdir(), "check-generated-"));
	try {
		await generate(template, temporary);
		return outputs.flatMap((output) => {
			const fresh = filesIn(join(temporary, output));
			const committed = filesIn(join(folder, output));
			if (fresh.size === 0) {
				return [`${join(folder, file)} generates nothing into ${output}`];
			}
			return [...new Set([...fresh.keys(), ...committed.keys()])]
				.filter((path) => fresh.get(path) !== committed.get(path))
				.map((path) => {
					const state = !committed.has(path) ? "missing" : !fresh.has(path) ? "left over" : "stale";
					return `${join(folder, output, path)} is ${state}: run buf generate --template ${file} in ${folder}`;
				});
		});
	} finally {
		rmSync(temporary, { recursive: true });
	}
}

function generate({ folder, file }: Template, output: string): Promise<void> {
	const { promise, resolve: done, reject } = Promise.withResolvers<void>();
	const child = spawn("buf", ["generate", "--template", file, "--output", output], {
		cwd: folder,
		stdio: ["ignore", "inherit", "inherit"],
	});
	child.on("error", reject);
	child.on("close", (code) =>
		code === 0 ? done() : reject(new Error(`buf generate failed for ${join(folder, file)}`)),
	);
	return promise;
}

/** The content of each file in a folder, by path; empty if the folder does not exist. */
function filesIn(folder: string): ReadonlyMap<string, string> {
	if (!existsSync(folder)) {
		return new Map();
	}
	const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
	return new Map(
		entries
			.filter((entry) => entry.isFile())
			.map((entry) => join(entry.parentPath, entry.name))
			.map((path) => [path.slice(folder.length + 1), readFileSync(path, "utf8")]),
	);
}

const { values } = parseArgs({ options: { root: { type: "string", default: "." } } });
const templates = templatesIn(resolve(values.root));
if (templates.length === 0) {
	console.error(`no buf.gen*.yaml below ${values.root}`);
	process.exitCode = 1;
}
const waiting = [...templates];
const problems: string[] = [];
await Promise.all(
	Array.from({ length: availableParallelism() }, async () => {
		for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
			problems.push(...(await problemsOf(next)));
		}
	}),
);
if (problems.length > 0) {
	console.error(problems.sort().join("\n"));
	process.exitCode = 1;
}
