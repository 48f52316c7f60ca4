import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { allAgentSettings } from "./agent/agent-settings.ts";
import { allSettings } from "./configuration/settings.ts";

/** Its code blocks are tested in `tests/docs`. */
const page = readFileSync(new URL("../../../docs/operating.md", import.meta.url), "utf8");

/** Flags of Node and of etcd's tools. */
const ofOthers = [
	"--max-old-space-size",
	"--quota-backend-bytes",
	"--write-out",
	"--auto-compaction-retention",
	"--endpoints",
	"--initial-cluster-token",
	"--force-new-cluster",
];

describe("the page on operating", () => {
	it("names flags, variables and keys that exist", () => {
		const known = [...allSettings, ...allAgentSettings];
		const flags = known.map(({ flag }) => `--${flag}`);
		for (const [flag] of page.matchAll(/--[a-z][a-z0-9-]+/g)) {
			expect([...flags, "--help", ...ofOthers]).toContain(flag);
		}
		const variables = known.map(({ variable }) => variable);
		for (const [variable] of page.matchAll(/PLINTH_\w+/g)) {
			expect(variables).toContain(variable);
		}
		const paths = known.map(({ path }) => path);
		for (const [path] of page.matchAll(/(?<=`)limits\.\w+(?=`)/g)) {
			expect(paths).toContain(path);
		}
	});
});
