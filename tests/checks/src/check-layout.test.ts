import { describe, expect, it } from "vitest";
import { check, projectWith } from "./project.fixture.ts";

describe("tables", () => {
	const row = (columns: number) => `| ${"x".repeat(columns - 4)} |`;

	it("may have up to 119 columns; code and text may be wider", () => {
		const page = `${row(119)}\n\n${"x".repeat(200)}\n\n\`\`\`\n${row(150)}\n\`\`\`\n`;
		expect(check("check-tables.ts", projectWith({ "docs/a.md": page }))).toEqual({
			status: 0,
			stderr: "",
		});
	});

	it("fail if they are wider", () => {
		const folder = projectWith({ "docs/a.md": `# Title\n\n${row(120)}\n${row(120)}\n` });
		const { status, stderr } = check("check-tables.ts", folder);
		expect(status).toBe(1);
		expect(stderr).toMatch(/^docs\/a\.md:3: the table has 120 columns/);
	});
});

describe("folders", () => {
	const files = (count: number, name: (index: number) => string) =>
		Object.fromEntries(Array.from({ length: count }, (_, index) => [name(index), ""]));

	it("may have 25 files, and any number of tests and generated files", () => {
		const folder = projectWith({
			...files(25, (index) => `src/${index}.ts`),
			...files(25, (index) => `src/${index}.test.ts`),
			...files(25, (index) => `src/${index}.fixture.ts`),
			...files(30, (index) => `src/gen/${index}.ts`),
		});
		expect(check("check-folders.ts", folder)).toEqual({ status: 0, stderr: "" });
	});

	it("fail if they have more", () => {
		const folder = projectWith(files(26, (index) => `packages/a/src/${index}.ts`));
		expect(check("check-folders.ts", folder)).toEqual({
			status: 1,
			stderr: "packages/a/src has 26 files, at most 25 are allowed\n",
		});
	});
});
