import { describeWith } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { runConformance } from "./run-conformance.fixture.ts";

describeWith("go")("Connect's conformance runner", () => {
	describe.each(["plinth", "node"] as const)("with --http2 %s", (http2) => {
		it("passes with TLS, client certificates and every compression", async () => {
			const report = await runConformance({
				compressions: ["IDENTITY", "GZIP", "BR"],
				...{ tls: true, http2 },
			});
			expect(report).toMatchObject({ failures: "", failedHere: [], failedByBoth: [] });
			expect(report.cases).toBeGreaterThan(5_000);
		});
	});
});
