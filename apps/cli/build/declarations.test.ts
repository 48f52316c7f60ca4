import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "@plinth/test-support";
import { expect, it } from "vitest";
import { reachableDeclarations } from "./declarations.ts";

it("finds the files that an entry needs, and the packages that they import", async () => {
	const folder = await temporaryFolder();
	const files = {
		"index.d.ts": `export {
    type A,
} from "./a.ts";
export declare const late: import("@scope/late/part").Late;
/**
 * import { no } from "in-a-comment";
 */
export declare const text = "from";
`,
		"a.d.ts":
			'import type { B } from "./b.js";\nimport type { X } from "x/deep";\nexport type A = B & X;\n',
		"b.d.ts": 'import "./a.js";\nimport { readFile } from "node:fs";\nexport type B = 1;\n',
		"unused.d.ts": 'import "unused";\n',
	};
	for (const [name, text] of Object.entries(files)) {
		await writeFile(join(folder, name), text);
	}
	const { files: found, packages } = reachableDeclarations(join(folder, "index.d.ts"));
	expect(found.map((file) => file.slice(folder.length + 1))).toEqual([
		"index.d.ts",
		"a.d.ts",
		"b.d.ts",
	]);
	expect(packages).toEqual(["@scope/late", "x"]);
});
