import { globSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as proto from "./index.ts";

describe("the package", () => {
	it("exports all that is generated", async () => {
		const files = globSync("gen/**/*.ts", { cwd: import.meta.dirname });
		expect(files).not.toEqual([]);
		for (const file of files) {
			expect(proto).toMatchObject(await import(new URL(file, import.meta.url).href));
		}
	});
});
