import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { projectFiles } from "./template.ts";

const root = join(import.meta.dirname, "../../../..");

interface Manifest {
	readonly version: string;
	readonly engines: Readonly<Record<string, string>>;
	readonly dependencies: Readonly<Record<string, string>>;
	readonly devDependencies: Readonly<Record<string, string>>;
}

/** The versions that the lockfile has for the root and for `packages/proto`, by package. */
function lockedVersions(): ReadonlyMap<string, string> {
	const lock: {
		readonly importers: Record<string, Record<string, Record<string, { version: string }>>>;
	} = parse(readFileSync(join(root, "pnpm-lock.yaml"), "utf8"));
	const groups = [".", "packages/proto"].flatMap((path) =>
		Object.values(lock.importers[path] ?? {}),
	);
	return new Map(
		groups
			.flatMap(Object.entries)
			.map(([name, { version }]) => [name, version.split("(")[0] ?? ""]),
	);
}

it("A new project has the versions that this workspace is tested with", async () => {
	const read = (path: string): Manifest => JSON.parse(readFileSync(join(root, path), "utf8"));
	const files = await projectFiles("shop", "npm");
	const project: Manifest = JSON.parse(
		files.find(({ path }) => path === "package.json")?.content ?? "",
	);
	const own = read("packages/scaffold/package.json");
	expect(project.engines).toEqual(own.engines);
	const { "@plinth/plinth": plinth, ...others } = {
		...project.dependencies,
		...project.devDependencies,
	};
	expect(plinth).toBe(own.version);
	const locked = lockedVersions();
	expect(Object.keys(others)).toHaveLength(5);
	expect(others).toEqual(
		Object.fromEntries(Object.keys(others).map((name) => [name, locked.get(name)])),
	);
	const { packageManager }: { readonly packageManager: string } = JSON.parse(
		readFileSync(join(root, "package.json"), "utf8"),
	);
	const dockerfile = (await projectFiles("shop", "pnpm")).find(({ path }) => path === "Dockerfile");
	expect(dockerfile?.content).toContain(`--global ${packageManager.split(".")[0]} `);
	const node = locked.get("node")?.split(".")[0];
	expect(dockerfile?.content.match(/^FROM \S+/gm)).toEqual(Array(2).fill(`FROM node:${node}-slim`));
});
