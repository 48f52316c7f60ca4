import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { exitCodes } from "./exit-codes.ts";
import { processIo } from "./process-io.ts";
import { createProgram } from "./program.ts";
import { runPlinth } from "./run-plinth.fixture.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

describe("the command line", () => {
	it("prints help where it is asked for, and where nothing is", async () => {
		const help = await runPlinth(["--help"]);
		expect(help).toMatchObject({ code: 0, err: "" });
		expect(help.out).toMatch(/^Usage: plinth \[flags\] \[command\]\n/);
		for (const words of [["--help"], ["get", "--help"]]) {
			const { out } = await runPlinth(words);
			expect(out).toMatch(/^Flags:$/m);
			expect(out).not.toMatch(/option/i);
		}
		expect(await runPlinth([])).toMatchObject({ code: 2, out: "", err: help.out });
		for (const line of help.out.split("\n")) {
			expect(line.length).toBeLessThanOrEqual(80);
		}
	});

	it("prints its version", async () => {
		const { code, out } = await runPlinth(["version"]);
		expect(code).toBe(0);
		expect(out).toMatch(/^\d+\.\d+\.\d+\n$/);
		expect((await runPlinth(["--version"])).out).toBe(out);
	});
});

describe("README.md", () => {
	it("has all commands, global flags and exit codes", () => {
		const program = createProgram(processIo(), async () => {});
		const names = program.commands.map((command) => command.name());
		for (const name of names.filter((one) => !one.startsWith("_"))) {
			expect(readme).toMatch(new RegExp(`^\\| \`${name} ?`, "m"));
		}
		for (const { long } of program.options) {
			if (long !== "--version") {
				expect(readme).toContain(`\`${long}\``);
			}
		}
		const rows = [...readme.matchAll(/^\| (\d+) +\|/gm)].map(([, code]) => Number(code));
		expect(rows).toEqual(Object.values(exitCodes));
	});
});
