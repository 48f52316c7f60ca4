/** The packages of the workspace, and the files of each. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parse } from "yaml";

export interface Manifest {
	readonly name: string;
	readonly private?: boolean;
	readonly exports?: unknown;
	readonly dependencies?: Readonly<Record<string, string>>;
	readonly devDependencies?: Readonly<Record<string, string>>;
	readonly optionalDependencies?: Readonly<Record<string, string>>;
	readonly peerDependencies?: Readonly<Record<string, string>>;
}

export interface Package {
	/** Relative to the root of the workspace, "." for the root itself. */
	readonly folder: string;
	readonly manifest: Manifest;
}

export function readPackage(root: string, folder: string): Package {
	return { folder, manifest: JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) };
}

/** All packages but the root, sorted by folder. */
export function readPackages(root: string): readonly Package[] {
	const workspace: unknown = parse(readFileSync(join(root, "pnpm-workspace.yaml"), "utf8"));
	const patterns: unknown = Object(workspace).packages;
	if (!Array.isArray(patterns)) {
		throw new Error(`${join(root, "pnpm-workspace.yaml")} names no packages`);
	}
	return globSync(
		patterns.map((pattern) => `${pattern}/package.json`),
		{ cwd: root },
	)
		.sort()
		.map((path) => readPackage(root, dirname(path)));
}

/** The paths of all files with one of these extensions, relative to the root. */
export function filesWith(root: string, extensions: readonly string[]): readonly string[] {
	return globSync(`**/*.{${extensions.join(",")},}`, {
		cwd: root,
		exclude: (name) => ignored.has(name),
	})
		.filter((path) => extensions.some((extension) => path.endsWith(`.${extension}`)))
		.sort();
}

const ignored = new Set(["node_modules", "dist", ".turbo", ".reports", ".git", "data"]);
