import type { HandlerContext } from "@connectrpc/connect";
import { type Access, allowed } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { writerOf } from "./writer.ts";

/** The writer of a call with these headers. */
function writer(access: Omit<Access, "check">, headers: Record<string, string> = {}): string {
	const call = { requestHeader: new Headers(headers) } as HandlerContext;
	return writerOf({ ...access, check: () => allowed }, call);
}

describe("writerOf", () => {
	it("is the controller that a part of the deployment names, and the subject of all others", () => {
		const named = { "x-plinth-controller": "agent" };
		expect(writer({ subject: "deployment", isDeployment: true }, named)).toBe("agent");
		expect(writer({ subject: "deployment", isDeployment: true })).toBe("deployment");
		expect(writer({ subject: "ann" }, named)).toBe("ann");
	});

	it("is a name of any characters, which the header has percent-encoded", () => {
		const deployment = { subject: "deployment", isDeployment: true };
		const encoded = { "x-plinth-controller": encodeURIComponent("größer: 100 % ✓") };
		expect(writer(deployment, encoded)).toBe("größer: 100 % ✓");
		expect(writer(deployment, { "x-plinth-controller": "100 %" })).toBe("100 %");
		expect(writer(deployment, { "x-plinth-controller": "" })).toBe("deployment");
	});

	it("cuts long subjects", () => {
		expect(writer({ subject: "x".repeat(128) })).toBe("x".repeat(128));
		expect(writer({ subject: "x".repeat(10_000) })).toBe(`${"x".repeat(127)}…`);
	});
});
