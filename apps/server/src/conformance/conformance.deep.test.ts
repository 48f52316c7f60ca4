import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { runConformance } from "./run-conformance.fixture.ts";

describeWith("go")("Connect's conformance runner", () => {
	it("passes without compression, as the server has it", async () => {
		const report = await runConformance({ compressions: ["IDENTITY"], tls: false });
		expect(report).toMatchObject({ failures: "", failedHere: [], failedByBoth: [] });
		expect(report.cases).toBeGreaterThan(900);
	});

	it("passes over TLS, with and without client certificates", async () => {
		const report = await runConformance({
			compressions: ["IDENTITY"],
			tls: true,
			isHttp2Only: true,
		});
		expect(report).toMatchObject({ failures: "", failedHere: [], failedByBoth: [] });
		expect(report.cases).toBeGreaterThan(1_200);
	});

	it("passes with compression", async () => {
		const report = await runConformance({ compressions: ["GZIP"], tls: false });
		expect(report).toMatchObject({ failures: "", failedHere: [], failedByBoth: [] });
		expect(report.cases).toBeGreaterThan(800);
	});

	it("passes with `node:http2`", async () => {
		const report = await runConformance({
			compressions: ["IDENTITY"],
			tls: false,
			http2: "node",
			isHttp2Only: true,
		});
		expect(report).toMatchObject({ failures: "", failedHere: [], failedByBoth: [] });
		expect(report.cases).toBeGreaterThan(400);
	});
});
