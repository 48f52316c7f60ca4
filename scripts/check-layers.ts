/**
 * Checks who imports whom, over the parsed imports of every TypeScript file (types and JSX included) and over the
 * dependencies in every package.json:
 *
 * - A package depends on packages of lower layers only (docs/design/architecture.md). Its tests, fixtures and benches
 *   may also import packages of its own layer. Packages never form a cycle.
 * - A relative import stays within its package (tests/checks also tests the scripts).
 * - A package offers its dependencies the peers that they ask for, as its own dependencies or peers.
 * - Every imported package is a declared dependency, and not only for development if published code imports it. A package
 *   that has rolldown may also bundle what it has for development: its build checks what is left to import.
 *
 *     node scripts/check-layers.ts [--root <folder>]
 */
import { existsSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join, matchesGlob, normalize, relative } from "node:path";
import { parseArgs } from "node:util";
import { parseSync, Visitor } from "oxc-parser";
import { filesWith, type Package, readPackage, readPackages } from "./workspace.ts";

/** From the bottom up. */
const layers: readonly (readonly string[])[] = [
	["runtime", "test-support", "bench", "release"],
	["proto-comments", "protoc-gen-clone", "proto", "wire-format", "scaffold"],
	["transport", "http2", "create-plinth"],
	["resource", "in-process", "rpc-client"],
	["cache", "storage", "rpc-server", "forwarding", "documents"],
	[
		"resource-service",
		"watch-client",
		"controller",
		"events",
		"leases",
		"storage-sqlite",
		"storage-etcd",
	],
	["system-controllers", "db-constraint", "peering", "testing", "console"],
	["server", "cli"],
	["dev"],
	["plinth"],
	["example-*"],
	["*-tests"],
];

const scope = "@plinth/";

/** Those whose names are not in the scope: npm derives `create-plinth` from `npm create plinth`. */
const unscoped = new Set(["create-plinth"]);

/** A project for users, with dependencies of its own, which is tested as they get it. */
const templates = "packages/scaffold/template/";

function layerOf(name: string): number {
	return layers.findIndex((layer) =>
		layer.some((entry) => {
			const [start = "", end] = (unscoped.has(entry) ? entry : `${scope}${entry}`).split("*");
			return end === undefined ? name === start : name.startsWith(start) && name.endsWith(end);
		}),
	);
}

const { values } = parseArgs({ options: { root: { type: "string", default: "." } } });
const { root } = values;
const rootPackage = readPackage(root, ".");
const packages = readPackages(root);
const byName = new Map(packages.map((entry) => [entry.manifest.name, entry]));
const problems = [
	...packages.flatMap(problemsOfManifest),
	...cycles(),
	...filesWith(root, ["ts", "tsx", "mts", "cts"])
		.filter((file) => !file.startsWith(templates))
		.flatMap(problemsOfFile),
];
if (packages.length === 0) {
	problems.push(`no packages below ${root}`);
}
if (problems.length > 0) {
	console.error(problems.join("\n"));
	process.exitCode = 1;
}

function problemsOfManifest({ folder, manifest }: Package): readonly string[] {
	const file = join(folder, "package.json");
	if (layerOf(manifest.name) < 0) {
		return [`${file}: ${manifest.name} is in no layer: add it to scripts/check-layers.ts`];
	}
	return [
		...Object.keys(forUsers(manifest)).map((name) => wrongLayer(manifest.name, name, false)),
		...Object.keys(manifest.devDependencies ?? {}).map((name) =>
			wrongLayer(manifest.name, name, true),
		),
		...missingPeers(manifest),
	].flatMap((problem) => (problem === undefined ? [] : [`${file}: ${problem}`]));
}

/** Libraries that dependencies in the workspace ask for as peers, and that the package neither has nor asks for. */
function missingPeers(manifest: Package["manifest"]): readonly string[] {
	if (manifest.private === true) {
		return [];
	}
	const offered = forUsers(manifest);
	return Object.keys(offered).flatMap((name) =>
		Object.keys(byName.get(name)?.manifest.peerDependencies ?? {})
			.filter((peer) => !(Object.hasOwn(offered, peer) || byName.has(peer)))
			.map((peer) => `${name} needs the peer ${peer}: add it to the (peer) dependencies`),
	);
}

/** What is installed with the package. */
function forUsers({ dependencies, peerDependencies, optionalDependencies }: Package["manifest"]) {
	return { ...dependencies, ...peerDependencies, ...optionalDependencies };
}

function wrongLayer(importer: string, imported: string, development: boolean): string | undefined {
	if (!(imported.startsWith(scope) || unscoped.has(imported)) || imported === importer) {
		return undefined;
	}
	const highest = layerOf(importer) - (development ? 0 : 1);
	if (layerOf(imported) <= highest) {
		return undefined;
	}
	return `${importer} must not depend on ${imported}, which is in no lower layer`;
}

function cycles(): readonly string[] {
	const done = new Set<string>();
	const found: string[] = [];
	const visit = (name: string, path: readonly string[]): void => {
		if (path.includes(name)) {
			found.push(`packages form a cycle: ${[...path.slice(path.indexOf(name)), name].join(" → ")}`);
			return;
		}
		const manifest = byName.get(name)?.manifest;
		if (manifest === undefined || done.has(name)) {
			return;
		}
		for (const next of Object.keys({ ...forUsers(manifest), ...manifest.devDependencies })) {
			visit(next, [...path, name]);
		}
		done.add(name);
	};
	for (const name of byName.keys()) {
		visit(name, []);
	}
	return found;
}

function problemsOfFile(file: string): readonly string[] {
	const owner = ownerOf(file);
	const source = readFileSync(join(root, file), "utf8");
	return importsOf(file, source).flatMap(({ specifier, start }) => {
		const problem = specifier.startsWith(".")
			? leavesPackage(owner, file, specifier)
			: wrongPackage(owner, file, specifier);
		return problem === undefined
			? []
			: [`${file}:${source.slice(0, start).split("\n").length}: ${problem}`];
	});
}

function ownerOf(file: string): Package {
	return packages.find(({ folder }) => file.startsWith(`${folder}/`)) ?? rootPackage;
}

interface Import {
	readonly specifier: string;
	/** The offset in the file. */
	readonly start: number;
}

function importsOf(file: string, source: string): readonly Import[] {
	const parsed = parseSync(file, source);
	const [error] = parsed.errors;
	if (error !== undefined) {
		throw new Error(`${file} cannot be parsed: ${error.message}`);
	}
	const { staticImports, staticExports, dynamicImports } = parsed.module;
	const found: Import[] = [
		...staticImports.map(({ moduleRequest }) => moduleRequest),
		...staticExports.flatMap(({ entries }) => entries.map(({ moduleRequest }) => moduleRequest)),
	].flatMap((request) => (request ? [{ specifier: request.value, start: request.start }] : []));
	for (const { moduleRequest } of dynamicImports) {
		const text = source.slice(moduleRequest.start, moduleRequest.end);
		if (/^["'`][^$]*["'`]$/.test(text)) {
			found.push({ specifier: text.slice(1, -1), start: moduleRequest.start });
		}
	}
	if (source.includes("import(")) {
		new Visitor({
			TSImportType: ({ source: { value, start } }) => found.push({ specifier: value, start }),
		}).visit(parsed.program);
	}
	return found;
}

function leavesPackage(owner: Package, file: string, specifier: string): string | undefined {
	const target = normalize(join(file, "..", specifier));
	const isTestOfScript = owner.folder === "tests/checks" && target.startsWith("scripts/");
	if (isTestOfScript || (ownerOf(target) === owner && !target.startsWith(".."))) {
		return undefined;
	}
	return `"${specifier}" leaves the package: import it by the name of its package, from its exports`;
}

function wrongPackage(owner: Package, file: string, specifier: string): string | undefined {
	const name = specifier
		.split("/")
		.slice(0, specifier.startsWith("@") ? 2 : 1)
		.join("/");
	const { manifest } = owner;
	if (isBuiltin(specifier) || name === manifest.name) {
		return undefined;
	}
	const development = isForDevelopment(owner, file);
	const bundles = Object.hasOwn(manifest.devDependencies ?? {}, "rolldown");
	const declared = development
		? {
				...forUsers(manifest),
				...manifest.devDependencies,
				...rootPackage.manifest.devDependencies,
			}
		: { ...forUsers(manifest), ...(bundles && manifest.devDependencies) };
	if (!Object.hasOwn(declared, name)) {
		return `${name} is not in the ${development ? "" : "(published) "}dependencies of ${manifest.name}`;
	}
	return owner === rootPackage ? undefined : wrongLayer(manifest.name, name, development);
}

/** Whether the file is not part of what the package publishes. */
function isForDevelopment(owner: Package, file: string): boolean {
	return (
		owner.manifest.private === true ||
		!file.startsWith(`${owner.folder}/src/`) ||
		notBuilt(owner).some((pattern) => matchesGlob(relative(owner.folder, file), pattern))
	);
}

/** What `tsconfig.build.json` excludes. */
function notBuilt({ folder }: Package): readonly string[] {
	const path = join(root, folder, "tsconfig.build.json");
	const { exclude }: { exclude?: readonly string[] } = existsSync(path)
		? JSON.parse(readFileSync(path, "utf8").replaceAll(/^\s*\/\/.*$/gm, ""))
		: {};
	return (exclude ?? ["src/**/*.test.ts", "src/**/*.fixture.ts"])
		.map((pattern) => pattern.replace(/^\$\{configDir\}\//, ""))
		.flatMap((pattern) => [pattern, `${pattern}/**`]);
}
