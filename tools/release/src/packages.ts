import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import type { Repository } from "./repository.ts";

/** The root of the workspace. */
export const root = join(import.meta.dirname, "../../..");

/** A package of the workspace that can be published. */
export interface Published {
	readonly name: string;
	readonly folder: string;
	/** Whether it can be imported. Otherwise it is a command alone, whose README has no program. */
	readonly isImportable: boolean;
	/** Its commands: the path of each in the package. */
	readonly commands: Readonly<Record<string, string>>;
	/** The packages of the workspace that it needs when it is installed. */
	readonly needs: readonly string[];
}

interface Manifest {
	readonly name: string;
	readonly private?: boolean;
	readonly exports?: unknown;
	readonly dependencies?: Readonly<Record<string, string>>;
	readonly publishConfig?: { readonly bin?: Readonly<Record<string, string>> };
}

/** Every package of the workspace that can be published. */
export const published: readonly Published[] = globSync("{packages,apps}/*/package.json", {
	cwd: root,
}).flatMap((file) => {
	const manifest: Manifest = JSON.parse(readFileSync(join(root, file), "utf8"));
	const { name, exports, publishConfig, dependencies = {} } = manifest;
	return manifest.private === true
		? []
		: [
				{
					...{ name, folder: join(root, dirname(file)) },
					isImportable: exports !== undefined,
					commands: publishConfig?.bin ?? {},
					needs: Object.entries(dependencies)
						.filter(([, range]) => range.startsWith("workspace:"))
						.map(([dependency]) => dependency),
				},
			];
});

/** The packages, each after those that it needs: what is published is installable at every moment. */
export function inOrder(packages: readonly Published[]): readonly Published[] {
	const byName = new Map(packages.map((each) => [each.name, each]));
	const ordered = new Set<Published>();
	const visit = (each: Published) => {
		if (!ordered.has(each)) {
			for (const name of each.needs) {
				const needed = byName.get(name);
				if (needed === undefined) {
					throw new Error(`${each.name} needs ${name}, which is not published`);
				}
				visit(needed);
			}
			ordered.add(each);
		}
	};
	for (const each of packages) {
		visit(each);
	}
	return [...ordered];
}

/**
 * Packs all published packages, from what is built, into a folder.
 *
 * @param repository - named by each package, with its folder.
 * @returns for each name of a package, `file:` and the path of its tarball, as package managers want it.
 */
export async function packAll(
	folder: string,
	repository?: Repository,
): Promise<Readonly<Record<string, string>>> {
	const names = published.flatMap(({ name }) => ["--filter", name]);
	const additions = published.map((each): [string, object] => [
		each.name,
		repository === undefined
			? {}
			: { repository: { ...repository, directory: relative(root, each.folder) } },
	]);
	const hooks = `--config.pnpmfile=${join(import.meta.dirname, "pnpmfile.mjs")}`;
	const { stdout } = await promisify(execFile)(
		"pnpm",
		[hooks, ...names, "pack", "--json", "--pack-destination", folder],
		{
			cwd: root,
			env: { ...process.env, PLINTH_REPOSITORIES: JSON.stringify(Object.fromEntries(additions)) },
			maxBuffer: 2 ** 26,
		},
	);
	const packed: readonly { readonly name: string; readonly filename: string }[] = JSON.parse(
		stdout.slice(stdout.indexOf("[")),
	);
	return Object.fromEntries(packed.map(({ name, filename }) => [name, `file:${filename}`]));
}
