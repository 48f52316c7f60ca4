import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createHandlerContext } from "@connectrpc/connect";
import { DeleteRequestSchema, ResourceService } from "@plinth/proto";
import { silentLogger } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { auditRefusals, auditWrites } from "./audit.ts";

const method = ResourceService.method.write;
const error = new ConnectError("no valid token", Code.Unauthenticated);

function recorded() {
	const clock = new FakeClock();
	const lines: Readonly<Record<string, unknown>>[] = [];
	let suppressed = 0;
	const audit = auditRefusals({
		clock,
		logger: { ...silentLogger, info: (fields) => lines.push(fields) },
		onSuppressed: () => {
			suppressed += 1;
		},
	});
	const refuse = (times: number, subject?: string) => {
		for (let call = 0; call < times; call += 1) {
			audit({ call: { method }, why: "unauthenticated", subject, error });
		}
	};
	return { clock, lines, refuse, suppressed: () => suppressed };
}

describe("the audit of writes", () => {
	it("names the region of a copy that a write names, cut as other names are", () => {
		const lines: Readonly<Record<string, unknown>>[] = [];
		const observer = auditWrites({ ...silentLogger, info: (fields) => lines.push(fields) });
		const call = createHandlerContext({
			...{ service: ResourceService, method: ResourceService.method.delete },
			...{ protocolName: "connect", requestMethod: "POST", url: "http://localhost/" },
		});
		const type = { group: "demo", groupVersion: "v2", kind: "Artist" };
		for (const region of ["us", "u".repeat(1_000_000)]) {
			const message = create(DeleteRequestSchema, { id: { type, name: "miles", region } });
			observer.started(call, message)?.ended(undefined);
		}
		expect(lines).toMatchObject([
			{ audit: { type: "demo.v2.Artist", name: "miles", region: "us" } },
			{ audit: { name: "miles", region: `${"u".repeat(128)}…` } },
		]);
	});
});

describe("the audit of refused writes", () => {
	it("leaves out lines on callers without a valid token past a rate, and counts them", async () => {
		const { clock, lines, refuse, suppressed } = recorded();
		refuse(1_000);
		expect(lines).toHaveLength(100);
		expect(suppressed()).toBe(900);
		await clock.advance(1_000);
		refuse(20);
		expect(lines).toHaveLength(110);
		expect(lines[100]).toMatchObject({ audit: { result: "unauthenticated" }, suppressed: 900 });
		expect(lines[101]).not.toHaveProperty("suppressed");
		expect(suppressed()).toBe(910);
	});

	it("has a line for each refusal of a known subject, however many callers without a token there are", () => {
		const { lines, refuse } = recorded();
		refuse(1_000);
		refuse(500, "alice");
		expect(lines).toHaveLength(600);
	});
});
