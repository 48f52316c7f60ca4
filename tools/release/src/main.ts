/**
 * Publishes all packages: see --help.
 *
 *     pnpm release [--dry-run] [--output <folder>] [--no-provenance]
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { identityOf, manifestProblems } from "./manifest-problems.ts";
import { npmRegistry } from "./npm-registry.ts";
import { publishingProblems, typeProblems } from "./package-checks.ts";
import { inOrder, packAll, published, root } from "./packages.ts";
import { publishAll, type Ready } from "./publish.ts";
import { type Repository, repositoryAt } from "./repository.ts";

const help = `usage: pnpm release [flags]

Publishes all packages to npm, with the versions that their package.json files name:
builds, packs and checks them (publint, attw, manifests), tags the commit, and publishes
each after those that it needs. Versions that are published already are skipped,
so that it can be run again after a failure.

Before it, on main:  pnpm changeset version, and a commit of what that changed.

  --dry-run          do everything but publish and tag, whatever is uncommitted
  --output <folder>  where the tarballs go (default: a temporary folder)
  --no-provenance    publish without provenance, which npm grants to CI alone
  --help             print this
`;

try {
	process.exitCode = await main();
} catch (error) {
	console.error(`release: ${error instanceof Error ? error.message : String(error)}`);
	process.exitCode = 1;
}

async function main(): Promise<number> {
	const { values } = parseArgs({
		allowNegative: true,
		options: {
			"dry-run": { type: "boolean", default: false },
			output: { type: "string" },
			provenance: { type: "boolean", default: true },
			help: { type: "boolean", default: false },
		},
	});
	if (values.help) {
		console.log(help);
		return 0;
	}
	const isDryRun = values["dry-run"];
	const repository = repositoryAt(remoteUrl());
	if (!isDryRun) {
		refuseUnlessReleased();
	}
	if (repository === undefined) {
		const missing = "the packages would name no repository, which npm needs for provenance";
		const wayOut = "set the remote origin, with git remote add origin <url>";
		if (!isDryRun && values.provenance) {
			throw new Error(`${missing}: ${wayOut}, or use --no-provenance`);
		}
		console.log(`note: ${missing}: ${wayOut}`);
	}
	console.log("building…");
	const filters = published.flatMap(({ name }) => ["--filter", name]);
	inRoot("pnpm", ["turbo", "run", "build", "--output-logs=errors-only", ...filters]);
	const folder = resolve(values.output ?? mkdtempSync(join(tmpdir(), "plinth-release-")));
	mkdirSync(folder, { recursive: true });
	console.log(`packing ${published.length} packages into ${folder}…`);
	const packages = await packed(folder, repository);
	const problems = await problemsOf(packages);
	if (problems.length > 0) {
		console.error(problems.join("\n"));
		return 1;
	}
	const [{ version = "" } = {}] = packages;
	if (isDryRun) {
		console.log(`${packages.length} packages of version ${version} are ready, in this order:`);
		console.log(packages.map(({ name }) => `  ${name}`).join("\n"));
		return 0;
	}
	tag(`v${version}`);
	await publishAll(packages, npmRegistry({ provenance: values.provenance }), console.log);
	console.log(`tagged v${version}: push it with git push origin v${version}`);
	return 0;
}

/** Refuses to publish what is not the committed state of main, or has changes without a version. */
function refuseUnlessReleased(): void {
	const branch = inRoot("git", ["rev-parse", "--abbrev-ref", "HEAD"]).trim();
	if (branch !== "main") {
		throw new Error(`releases are made from the branch main only, and this is ${branch}`);
	}
	if (inRoot("git", ["status", "--porcelain"]).trim() !== "") {
		throw new Error("there are uncommitted changes: commit them, or try --dry-run");
	}
	const pending = inRoot("git", ["ls-files", ".changeset/*.md"])
		.split("\n")
		.filter((file) => file !== "" && !file.endsWith("README.md"));
	if (pending.length > 0) {
		throw new Error(
			`${pending.join(", ")} would be left out: run pnpm changeset version, and commit`,
		);
	}
}

/**
 * Tags the commit before anything is published: what continues a failed release is the same commit.
 *
 * @throws Error if another commit has the tag.
 */
function tag(name: string): void {
	const [tagged, head] = [`refs/tags/${name}`, "HEAD"].map((each) =>
		inRoot("git", ["rev-parse", "--verify", "--quiet", `${each}^{commit}`], {
			mayFail: true,
		}).trim(),
	);
	if (tagged === "") {
		inRoot("git", ["tag", name]);
	} else if (tagged !== head) {
		throw new Error(
			`${name} is the tag of another commit: continue a failed release from that commit, or run pnpm changeset version`,
		);
	}
}

/** The URL of the remote that the packages come from; empty if there is none. */
function remoteUrl(): string {
	const { GITHUB_SERVER_URL: host, GITHUB_REPOSITORY: name } = process.env;
	return host !== undefined && name !== undefined
		? `${host}/${name}`
		: inRoot("git", ["config", "--get", "remote.origin.url"], { mayFail: true });
}

/** The packed packages, each after those that it needs. */
async function packed(
	folder: string,
	repository: Repository | undefined,
): Promise<readonly Ready[]> {
	const tarballs = await packAll(folder, repository);
	return await Promise.all(
		inOrder(published).map(async ({ name }) => {
			const tarball = tarballs[name]?.replace("file:", "") ?? "";
			const { version } = await identityOf(tarball);
			return { name, version, tarball };
		}),
	);
}

async function problemsOf(packages: readonly Ready[]): Promise<readonly string[]> {
	const versions = new Map(packages.map(({ name, version }) => [name, version]));
	const problems = await Promise.all(
		packages.map(async ({ name, tarball }) => {
			const isImportable = published.some((each) => each.name === name && each.isImportable);
			const found = [
				...(await manifestProblems(tarball, versions)),
				...(await publishingProblems(tarball)),
				...(isImportable ? await typeProblems(tarball) : []),
			];
			return found.map((problem) => `${name}: ${problem}`);
		}),
	);
	const different = new Set(versions.values());
	return [
		...problems.flat(),
		...(different.size === 1 ? [] : [`the versions differ: ${[...different].join(", ")}`]),
	];
}

/** @returns what a program prints; if it may fail and does, nothing. */
function inRoot(program: string, args: readonly string[], { mayFail = false } = {}): string {
	try {
		return execFileSync(program, args, {
			cwd: root,
			encoding: "utf8",
			stdio: ["ignore", "pipe", mayFail ? "ignore" : "inherit"],
		});
	} catch (error) {
		if (mayFail) {
			return "";
		}
		throw error;
	}
}
