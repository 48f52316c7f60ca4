/**
 * Fails when generated code is stale: it generates into a temporary folder, and compares that with
 * what is committed, file by file.
 *
 *     node ../../scripts/check-generated.ts [folder]
 *
 * The folder holds a `buf.gen.yaml` whose plugins all write to `src/gen`; it is the working
 * directory unless given.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const OUTPUT = "src/gen";

function main(folder: string): void {
	const temporary = mkdtempSync(join(tmpdir(), "check-generated-"));
	try {
		generate(folder, temporary);
		const fresh = filesIn(join(temporary, OUTPUT));
		const committed = filesIn(join(folder, OUTPUT));
		const stale = [...new Set([...fresh.keys(), ...committed.keys()])].filter(
			(path) => fresh.get(path) !== committed.get(path),
		);
		for (const path of stale.sort()) {
			const state = !committed.has(path) ? "missing" : !fresh.has(path) ? "left over" : "stale";
			console.error(`${join(folder, OUTPUT, path)} is ${state}`);
		}
		if (stale.length > 0) {
			console.error("Run `buf generate` there, or `pnpm generate` in the package.");
			process.exitCode = 1;
		}
	} finally {
		rmSync(temporary, { recursive: true });
	}
}

function generate(folder: string, output: string): void {
	const { status, error } = spawnSync("buf", ["generate", "--output", output], {
		cwd: folder,
		stdio: ["ignore", "inherit", "inherit"],
	});
	if (error !== undefined || status !== 0) {
		throw new Error(`buf generate failed in ${folder}`, { cause: error });
	}
}

/** The content of each file in a folder, by path. None where there is no such folder. */
function filesIn(folder: string): Map<string, string> {
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

main(process.argv[2] ?? ".");
