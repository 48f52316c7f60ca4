import { relative } from "node:path";
import type { Generated } from "../project/generate.ts";

/** The text for the terminal: what was written, and what to do next. */
export function report(generated: Generated, folder: string): string {
	const { root, created, changed, lines, next, dryRun } = generated;
	const where = relative(folder, root);
	return [
		...(where === "" ? [] : [`in ${where}:`]),
		...created.map(({ path }) => `${dryRun ? "would create" : "created"} ${path}`),
		...changed.map((path) => `${dryRun ? "would change" : "changed"} ${path}`),
		...(changed.length > 0
			? []
			: [
					"",
					"src/module.ts does not call defineModule with lists that can be extended. Add this to it:",
					...lines.map((line) => `  ${line}`),
				]),
		...(dryRun
			? [
					...created.flatMap(({ path, content }) => ["", `--- ${path}`, content.trimEnd()]),
					...changed.flatMap((path) => ["", `--- ${path}`, ...lines]),
				]
			: ["", "Next:", ...next.map((step, at) => `  ${at + 1}. ${step}`)]),
		"",
	].join("\n");
}
