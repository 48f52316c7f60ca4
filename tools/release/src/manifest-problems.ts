import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

interface PackedManifest {
	readonly name?: string;
	readonly version?: string;
	readonly license?: string;
	readonly description?: string;
	readonly engines?: { readonly node?: string };
	readonly dependencies?: Readonly<Record<string, string>>;
	readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Files without which nobody should publish a package. */
const neededFiles = ["README.md", "LICENSE"];

/**
 * What is wrong with the manifest and the files of a packed package, a line each.
 *
 * @param versions - the version of each package that is published with it.
 */
export async function manifestProblems(
	tarball: string,
	versions: ReadonlyMap<string, string>,
): Promise<readonly string[]> {
	const [{ stdout: text }, { stdout: list }] = await Promise.all([
		run("tar", ["-xzOf", tarball, "package/package.json"]),
		run("tar", ["-tzf", tarball], { maxBuffer: 2 ** 26 }),
	]);
	const manifest: PackedManifest = JSON.parse(text);
	const files = new Set(list.split("\n").map((path) => path.replace(/^package\//, "")));
	const problems: string[] = [];
	for (const key of ["name", "version", "license", "description"] as const) {
		if (!manifest[key]) {
			problems.push(`package.json has no ${key}`);
		}
	}
	if (manifest.engines?.node === undefined) {
		problems.push("package.json does not say which Node.js it needs (engines)");
	}
	for (const leftover of ["workspace:", "catalog:", "plinth-dist"]) {
		if (text.includes(leftover)) {
			problems.push(`package.json contains "${leftover}", which only this workspace understands`);
		}
	}
	const needed = { ...manifest.dependencies, ...manifest.peerDependencies };
	for (const [name, range] of Object.entries(needed)) {
		const version = versions.get(name);
		if (version === undefined && /^@plinth\//.test(name)) {
			problems.push(`it needs ${name}, which is not published`);
		} else if (version !== undefined && range !== version && range !== `^${version}`) {
			problems.push(`it needs ${name} ${range}, and ${version} is published`);
		}
	}
	for (const file of neededFiles.filter((each) => !files.has(each))) {
		problems.push(`it has no ${file}`);
	}
	for (const file of [...files].filter((each) => /^dist\/.*\.(test|fixture)\.[jt]s$/.test(each))) {
		problems.push(`it contains ${file}, which only tests need`);
	}
	return problems;
}

/** The name and the version of a packed package. */
export async function identityOf(
	tarball: string,
): Promise<{ readonly name: string; readonly version: string }> {
	const { stdout } = await run("tar", ["-xzOf", tarball, "package/package.json"]);
	return JSON.parse(stdout);
}
