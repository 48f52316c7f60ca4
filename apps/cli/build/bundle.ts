/**
 * Bundles this package with most of what it needs at run time: the last step of its build. A call of `plinth` otherwise
 * spends most of its time on finding and reading some 300 modules.
 *
 *     node build/bundle.ts
 *
 * Each `import()` stays one, so that a command loads only what it needs. The command and the entry for programs share
 * their files: a process has one copy of each module.
 */
import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { type OutputChunk, type Plugin, rolldown } from "rolldown";
import { reachableDeclarations } from "./declarations.ts";
import { thirdPartyNotices } from "./third-party.ts";

const folder = join(import.meta.dirname, "..");
const dist = join(folder, "dist");
const notices = "third-party-notices.txt";

/**
 * Replaces the module `node:process`, which commander imports, by the global. When it is imported, Node.js reads all
 * properties of the process, and so prepares standard input and other things that most commands do not use.
 */
const globalProcess: Plugin = {
	name: "global-process",
	resolveId: (source) => (source === "node:process" ? "\0process" : undefined),
	load: (id) => (id === "\0process" ? "export default process;" : undefined),
};

const manifest: { readonly dependencies: Readonly<Record<string, string>> } = JSON.parse(
	readFileSync(join(folder, "package.json"), "utf8"),
);
const chunks = await bundle();
writeFileSync(join(dist, notices), thirdPartyNotices(chunks.flatMap(({ moduleIds }) => moduleIds)));
const declarations = reachableDeclarations(join(dist, "index.d.ts"));
const names = new Set(chunks.map(({ fileName }) => fileName));
const imported = chunks
	.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports])
	.filter((each) => !(names.has(each) || isBuiltin(each)));
const needed = [...imported, ...declarations.packages];
const undeclared = [...new Set(needed)].filter(
	(name) => !Object.hasOwn(manifest.dependencies, name),
);
if (undeclared.length > 0) {
	throw new Error(`what is built needs ${undeclared.join(", ")}: add it to the dependencies`);
}
removeAllBut(
	new Set([
		...chunks.flatMap(({ fileName }) => [fileName, `${fileName}.map`]),
		...declarations.files.map((file) => file.slice(dist.length + 1)),
		notices,
	]),
);

async function bundle(): Promise<readonly OutputChunk[]> {
	await using build = await rolldown({
		cwd: folder,
		input: { main: "src/main.ts", index: "src/index.ts" },
		platform: "node",
		plugins: [globalProcess],
		// An import that is not found would otherwise be left as it is.
		onLog: (level, { message }) => {
			if (level === "warn") {
				throw new Error(message);
			}
		},
	});
	const { output } = await build.write({
		dir: dist,
		chunkFileNames: "[name].js",
		// As the other packages, which have maps and no sources.
		sourcemap: true,
		sourcemapExcludeSources: true,
		comments: false,
	});
	return output.filter((file) => file.type === "chunk");
}

/** Removes what is not published: other declarations, and what an earlier build has left. */
function removeAllBut(files: ReadonlySet<string>): void {
	for (const entry of globSync("**", { cwd: dist, withFileTypes: true })) {
		const path = join(entry.parentPath, entry.name);
		if (entry.isFile() && !files.has(path.slice(dist.length + 1))) {
			rmSync(path);
		}
	}
}
