import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { allSettings } from "./configuration/settings.ts";

/** Its code blocks are tested in `tests/docs`. */
const page = readFileSync(new URL("../../../docs/operating.md", import.meta.url), "utf8");

describe("the page on operating", () => {
	it("names flags, variables and keys that there are", () => {
		const flags = allSettings.map(({ flag }) => `--${flag}`);
		for (const [flag] of page.matchAll(/--[a-z][a-z-]+/g)) {
			// The last one is Node's.
			expect([...flags, "--help", "--max-old-space-size"]).toContain(flag);
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
