import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "@plinth/test-support";
import { expect, it } from "vitest";
import { showProblems } from "./problem.ts";

it("problems of a tool are shown with their code: one of each line, and a few of them", async () => {
	const folder = await temporaryFolder();
	await writeFile(join(folder, "a.proto"), "one\ntwo\n");
	const problem = (line: number, column: number, message: string) => ({
		...{ file: "a.proto", line, column, message },
	});
	const first = "a.proto:1:1: first\n\n  > 1 | one\n      | ^\n    2 | two\n";
	expect(
		showProblems(folder, [problem(1, 1, "first"), problem(1, 2, "follows")], "npx buf lint"),
	).toEqual([first]);
	const many = Array.from({ length: 8 }, (_, index) => problem(index + 1, 1, "first"));
	const shown = showProblems(folder, many, "npx buf lint");
	expect(shown[0]).toBe(first);
	expect(shown).toHaveLength(6);
	expect(shown.at(-1)).toBe("and 3 more: see npx buf lint");
});
