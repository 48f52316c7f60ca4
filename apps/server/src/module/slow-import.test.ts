import { FakeClock } from "@plinth/runtime/testing";
import { expect, it } from "vitest";
import { reportSlowImport } from "./slow-import.ts";

it("reports an import that does not end, with growing pauses, until it has ended", async () => {
	const clock = new FakeClock();
	const reported: unknown[] = [];
	const logger = { warn: (fields: object) => void reported.push(fields) };
	const { promise, resolve } = Promise.withResolvers<string>();
	const imported = reportSlowImport(promise, "module.ts", { logger, clock });
	await clock.advance(9_000);
	expect(reported).toEqual([]);
	await clock.advance(80_000);
	expect(reported).toEqual([10, 30, 70].map((seconds) => ({ module: "module.ts", seconds })));
	resolve("the module");
	expect(await imported).toBe("the module");
	await clock.advance(10_000_000);
	expect(reported).toHaveLength(3);
});
