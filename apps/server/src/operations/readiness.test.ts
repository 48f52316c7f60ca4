import { type Logger, silentLogger } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { Readiness } from "./readiness.ts";

function recorded(): { readonly lines: unknown[]; readonly logger: Logger } {
	const lines: unknown[] = [];
	return {
		lines,
		logger: {
			...silentLogger,
			error: (fields, message) => lines.push([message, fields]),
			info: (fields, message) => lines.push([message, fields]),
		},
	};
}

describe("readiness", () => {
	it("is lost with the first blocked part, and is back with the last one that is cleared", () => {
		const readiness = new Readiness(silentLogger);
		expect(readiness.isReady).toBe(true);
		readiness.block("storage", "the disk failed");
		readiness.block("references", "another schema is active");
		expect(readiness.isReady).toBe(false);
		readiness.clear("storage");
		expect(readiness.isReady).toBe(false);
		expect([...readiness.reasons]).toEqual([["references", "another schema is active"]]);
		readiness.clear("references");
		expect(readiness.isReady).toBe(true);
	});

	it("logs each transition once", () => {
		const { lines, logger } = recorded();
		const readiness = new Readiness(logger);
		readiness.block("storage", "the disk failed");
		readiness.block("storage", "the disk failed");
		readiness.clear("storage");
		readiness.clear("storage");
		expect(lines).toEqual([
			["server not ready", { part: "storage", reason: "the disk failed" }],
			["server ready again", { part: "storage" }],
		]);
	});
});
