import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { faultNames, mutants } from "./mutants.fixture.ts";
import { withoutFaultPoints } from "./without-fault-points.fixture.ts";

const src = fileURLToPath(new URL("..", import.meta.url));

/** The files that users run, with what they contain. */
const sources = globSync("**/*.ts", { cwd: src })
	.filter((file) => !/\.(test|fixture)\.ts$|^(mutants|simulation)\/|^fault-points/.test(file))
	.map((file) => ({ file, source: readFileSync(join(src, file), "utf8") }));

describe("mutants", () => {
	it.each(faultNames)("have their fault points: %s", (fault) => {
		const places = sources.flatMap(({ source }) => source.split(`isPlanted("${fault}")`).slice(1));
		expect(places).toHaveLength(mutants[fault].places ?? 1);
	});

	it("are the only faults", () => {
		const named = sources.flatMap(({ source }) =>
			[...source.matchAll(/isPlanted\(\s*([^)]*?)\s*\)/g)].map(([, argument]) => argument),
		);
		expect(named.sort()).toEqual(
			faultNames
				.flatMap((name) => Array(mutants[name].places ?? 1).fill(JSON.stringify(name)))
				.sort(),
		);
	});
});

it("docs/db-constraint-simulation.md lists each mutant once, with what finds it", () => {
	const page = readFileSync(join(src, "../../../docs/db-constraint-simulation.md"), "utf8");
	const [, section = ""] = /^## Mutants$(.*?)^## /ms.exec(page) ?? [];
	const listed = [...section.matchAll(/^\|(.*)\|$/gm)]
		.map(([, row = ""]) => row.split("|").map((cell) => cell.trim().replaceAll("`", "")))
		.filter(([name = ""]) => name !== "mutant" && !/^-+$/.test(name))
		// The fourth cell is the promise that a seed breaks.
		.map((cells) => cells.slice(0, 3));
	const expected = faultNames.map((name) => {
		const mutant = mutants[name];
		return "test" in mutant
			? [name, mutant.test.file]
			: [name, `${mutant.seed}`, mutant.options?.join(" ") ?? ""];
	});
	expect(listed.sort()).toEqual(expected.sort());
});

describe("without fault points", () => {
	const withFaults = sources.filter(({ source }) => source.includes("isPlanted"));

	it.each(withFaults)("$file keeps its lines", ({ file, source }) => {
		const cleaned = withoutFaultPoints(file, source);
		expect(cleaned).not.toMatch(/isPlanted|fault-points/);
		expect(cleaned.split("\n")).toHaveLength(source.split("\n").length);
	});

	it.each([
		["if (a || isPlanted()) b();", "if (a) b();"],
		["if (isPlanted() || a) b();", "if (a) b();"],
		["if (a && !isPlanted()) b();", "if (a) b();"],
		["if (a && !isPlanted() && c) b();", "if (a && c) b();"],
		["if (a || (isPlanted() && c)) b();", "if (a) b();"],
		["if (isPlanted() && a) { b(); }", ""],
		["if (!isPlanted()) { b(); }", "{ b(); }"],
		["if (a) b(); else if (isPlanted()) c(); else d();", "if (a) b(); else d();"],
		["a = isPlanted() ? b : c;", "a = c;"],
		["a = !isPlanted() && c ? b : d;", "a = c ? b : d;"],
		["() => { return isPlanted()\n? a\n: b; }", "() => { return b\n\n; }"],
		["import { isPlanted } from 'a';\nif (isPlanted())\nb();\nc();", "\n\n\nc();"],
	])("%j is %j", (source, cleaned) => {
		expect(withoutFaultPoints("a.ts", source)).toBe(cleaned);
	});

	it.each(["a = isPlanted();", "if (isPlanted() === a) b();", "if (a && isPlanted()) b();"])(
		"%j is refused",
		(source) => {
			expect(() => withoutFaultPoints("a.ts", source)).toThrow("a.ts: a fault point must be");
		},
	);

	it("what can't be parsed is refused", () => {
		expect(() => withoutFaultPoints("a.ts", "if (a) b(); else if (isPlanted()) c();")).toThrow(
			"a.ts: without its fault points, it can't be parsed",
		);
	});
});
