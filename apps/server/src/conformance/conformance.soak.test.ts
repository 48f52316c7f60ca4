import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { runConformance } from "./run-conformance.fixture.ts";

describeWith("go")("Connect's conformance runner", () => {
	it("passes with TLS, client certificates and every compression", async () => {
		const report = await runConformance({ compressions: ["IDENTITY", "GZIP", "BR"], tls: true });
		expect(report).toMatchObject({ failures: "", failedHere: [], failedByBoth: [] });
		expect(report.cases).toBeGreaterThan(5_000);
	});
});
