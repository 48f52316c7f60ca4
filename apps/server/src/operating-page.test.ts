import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseCommandLine } from "./configuration/configuration.ts";
import { allSettings } from "./configuration/settings.ts";
import { parseAccessFile } from "./security/access-file.ts";

const page = readFileSync(new URL("../../../docs/operating.md", import.meta.url), "utf8");

/** The blocks of the page that begin so. */
function blocks(language: string): readonly string[] {
	const pattern = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, "g");
	return [...page.matchAll(pattern)].map(([, block = ""]) => block);
}

describe("the page on operating", () => {
	it("has configurations that the server takes", () => {
		expect(blocks("yaml configuration").length).toBeGreaterThan(0);
		for (const block of blocks("yaml configuration")) {
			const folder = mkdtempSync(join(tmpdir(), "plinth-page-"));
			onTestFinished(() => rmSync(folder, { recursive: true }));
			const file = join(folder, "plinth.yaml");
			writeFileSync(file, block);
			expect(parseCommandLine(["--config", file])).toMatchObject({ kind: "serve" });
		}
	});

	it("has access files that the server takes", () => {
		for (const block of blocks("yaml access")) {
			expect(parseAccessFile("access.yaml", block).tokens).toHaveLength(1);
		}
	});

	it("names flags, variables and keys that there are", () => {
		const flags = allSettings.map(({ flag }) => `--${flag}`);
		for (const [flag] of page.matchAll(/--[a-z][a-z-]+/g)) {
			expect([...flags, "--help"]).toContain(flag);
		}
		const variables = allSettings.map(({ variable }) => variable);
		for (const [variable] of page.matchAll(/PLINTH_\w+/g)) {
			expect(variables).toContain(variable);
		}
		const paths = allSettings.map(({ path }) => path);
		for (const [path] of page.matchAll(/(?<=`)limits\.\w+(?=`)/g)) {
			expect(paths).toContain(path);
		}
	});
});
