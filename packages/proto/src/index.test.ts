import { globSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as proto from "./index.ts";

describe("the package", () => {
	it("exports all generated code, except messages with common names", async () => {
		const files = globSync("gen/**/*.ts", {
			cwd: import.meta.dirname,
			exclude: [
				...[
					"agent/**",
					"backup/**",
					"cluster/**",
					"controller/**",
					"event/**",
					"history/**",
					"lease/**",
					"meta/**",
					"peering/**",
					"schema/**",
					"server/**",
				],
				"type/v1/table_*",
			].map((path) => `gen/plinth/${path}`),
		});
		expect(files).not.toEqual([]);
		for (const file of files) {
			expect(proto).toMatchObject(await import(new URL(file, import.meta.url).href));
		}
		expect(proto.EventService.typeName).toBe("plinth.event.v1.EventService");
		expect(proto.HistoryService.typeName).toBe("plinth.history.v1.HistoryService");
		expect(proto.ControllerService.typeName).toBe("plinth.controller.v1.ControllerService");
	});
});
