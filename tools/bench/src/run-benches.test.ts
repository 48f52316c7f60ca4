import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";

const program = join(import.meta.dirname, "run-benches.ts");

/** Runs the program in a package with two benches. */
function run(...args: readonly string[]) {
	const folder = mkdtempSync(join(tmpdir(), "plinth-bench-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	mkdirSync(join(folder, "bench"));
	for (const name of ["call", "watch"]) {
		const text = `/*\n * The cost of a ${name}.\n *\n *   pnpm bench ${name} --rounds=3\n */\nconsole.log("ran ${name}", ...process.argv.slice(2));\n`;
		writeFileSync(join(folder, `bench/${name}.bench.ts`), text);
	}
	const { stdout, status } = spawnSync(process.execPath, [program, ...args], {
		cwd: folder,
		encoding: "utf8",
	});
	return { stdout, status };
}

it("runs the benches that are named, with their options", () => {
	expect(run("call", "--rounds=3")).toEqual({
		stdout: "\nbench/call.bench.ts\nran call --rounds=3\n",
		status: 0,
	});
});

it("prints with --help what benches say about themselves, and runs none", () => {
	const { stdout, status } = run("watch", "--help");
	expect(status).toBe(0);
	expect(stdout).toContain("bench/watch.bench.ts");
	expect(stdout).toContain("  The cost of a watch.\n");
	expect(stdout).toContain("  pnpm bench watch --rounds=3");
	expect(stdout).not.toContain("ran");
});
