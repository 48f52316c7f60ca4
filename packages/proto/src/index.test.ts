import { globSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as proto from "./index.ts";

describe("the package", () => {
	it("exports all that is generated, but of controllers the service alone", async () => {
		const files = globSync("gen/**/*.ts", {
			cwd: import.meta.dirname,
			exclude: ["gen/plinth/controller/**"],
		});
		expect(files).not.toEqual([]);
		for (const file of files) {
			expect(proto).toMatchObject(await import(new URL(file, import.meta.url).href));
		}
		expect(proto.ControllerService.typeName).toBe("plinth.controller.v1.ControllerService");
	});
});
