import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "./page.ts";

const manifests = ["package.json", "{packages,apps,examples,tests,tools}/*/package.json"];

it("docs/dependencies.md names each dependency", () => {
	const page = readFileSync(join(root, "docs/dependencies.md"), "utf8");
	const names = globSync(manifests, { cwd: root }).flatMap((file) => {
		const {
			dependencies = {},
			devDependencies = {},
		}: Record<string, Record<string, string>> = JSON.parse(readFileSync(join(root, file), "utf8"));
		return Object.keys({ ...dependencies, ...devDependencies });
	});
	const external = new Set(
		names.filter((name) => !name.startsWith("@plinth/") && name !== "create-plinth"),
	);
	expect(external.size).toBeGreaterThan(20);
	expect([...external].filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
