import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { errorReport } from "../child/error-report.ts";
import { describeError } from "./describe-error.ts";

/** Imports a file with this code, and describes the error. */
async function described(code: string): Promise<string> {
	const folder = await temporaryFolder();
	const path = join(folder, "src/site.ts");
	await mkdir(join(folder, "src"));
	await writeFile(join(folder, "package.json"), '{ "type": "module" }');
	await writeFile(join(folder, "src/other.ts"), "export const other = 1;\n");
	await writeFile(path, code);
	// Not in this process, in which vitest imports files in its own way.
	const { stdout } = await promisify(execFile)(process.execPath, [
		"--input-type=module",
		"--eval",
		`import { errorReport } from ${JSON.stringify(import.meta.resolve("../child/error-report.ts"))};
		import { withSyntaxPlace } from ${JSON.stringify(import.meta.resolve("../child/syntax-place.ts"))};
		await import(${JSON.stringify(pathToFileURL(path).href)}).catch((cause) => {
			const error = new Error("module src/site.ts can't be imported", { cause });
			error.name = "ModuleError";
			const report = withSyntaxPlace(errorReport(error), ${JSON.stringify(path)});
			console.log(JSON.stringify(report));
		});`,
	]);
	return describeError(JSON.parse(stdout), folder);
}

describe("the description of an error", () => {
	it("of TypeScript that can't be parsed has the place and the code", async () => {
		expect(await described("const a: number = 1;\nexport const = 3;\n")).toBe(
			`src/site.ts:2:14: SyntaxError: Unexpected token \`=\`. Expected yield, an identifier, [ or {

    1 | const a: number = 1;
  > 2 | export const = 3;
      |              ^
`,
		);
	});

	it("of a name that is declared twice, which V8 finds, has the place too", async () => {
		expect(await described("const a: number = 1;\nlet b: string; let b;\n")).toBe(
			`src/site.ts:2:20: SyntaxError: Identifier 'b' has already been declared

    1 | const a: number = 1;
  > 2 | let b: string; let b;
      |                    ^
`,
		);
	});

	it("of an export that does not exist has the import", async () => {
		expect(await described('import { site } from "./other.ts";\nexport default site;\n')).toContain(
			`src/site.ts:1:10: SyntaxError: The requested module './other.ts' does not provide an export named 'site'

  > 1 | import { site } from "./other.ts";
      |          ^`,
		);
	});

	it("of a module that is not found has the import", async () => {
		expect(
			await described('const a = 1;\nimport { b } from "./nowhere.ts";\nexport { a, b };\n'),
		).toContain(`
    1 | const a = 1;
  > 2 | import { b } from "./nowhere.ts";
      |                   ^^^^^^^^^^^^^^
    3 | export { a, b };`);
		expect(await described('import "no-such-package";\n')).toBe(
			`src/site.ts:1:8: Cannot find package 'no-such-package'

  > 1 | import "no-such-package";
      |        ^^^^^^^^^^^^^^^^^
`,
		);
	});

	it("of code that throws has the innermost call of the project", async () => {
		const code = `function check(url: string): never {
	throw new TypeError(\`no URL: \${url}\`);
}
["a"].map((each) => check(each));
`;
		expect(await described(code)).toBe(
			`src/site.ts:2:8: TypeError: no URL: a

    1 | function check(url: string): never {
  > 2 |   throw new TypeError(\`no URL: \${url}\`);
      |         ^
    3 | }
    4 | ["a"].map((each) => check(each));
`,
		);
	});

	it("that says everything is its message", () => {
		const error = Object.assign(new Error("two modules are named zoo"), { name: "ModuleError" });
		expect(describeError(errorReport(error), "/nowhere")).toBe("two modules are named zoo");
	});
});
