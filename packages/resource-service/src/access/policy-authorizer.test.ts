import { describe, expect, it } from "vitest";
import { type Policy, PolicyAuthorizer, tokenHash } from "./policy-authorizer.ts";

const reader: Policy = { subject: "reader", rules: [{ operations: ["operator:read"] }] };
const writer: Policy = { subject: "writer", rules: [{ operations: ["operator:write"] }] };

describe("policies that are all replaced", () => {
	it("end where they are gone or another, and go on where they are the same", () => {
		const authorizer = new PolicyAuthorizer();
		authorizer.replaceAll(
			new Map([
				[tokenHash("same"), reader],
				[tokenHash("other"), reader],
				[tokenHash("gone"), reader],
			]),
		);
		const [same, other, gone] = ["same", "other", "gone"].map((token) =>
			authorizer.authenticate(token),
		);
		authorizer.replaceAll(
			new Map([
				[tokenHash("same"), structuredClone(reader)],
				[tokenHash("other"), writer],
				[tokenHash("new"), reader],
			]),
		);
		expect([same, other, gone].map((access) => access?.ended?.aborted)).toEqual([
			false,
			true,
			true,
		]);
		expect(authorizer.authenticate("same")).toBe(same);
		expect(authorizer.authenticate("other").subject).toBe("writer");
		expect(authorizer.authenticate("new").subject).toBe("reader");
		expect(() => authorizer.authenticate("gone")).toThrow("the token is not known");
	});

	it("can be taken away one by one, by hash", () => {
		const authorizer = new PolicyAuthorizer();
		authorizer.grant("token", reader);
		const access = authorizer.authenticate("token");
		authorizer.revokeHashed(tokenHash("token"));
		expect(access.ended?.aborted).toBe(true);
		expect(() => authorizer.authenticate("token")).toThrow("the token is not known");
	});
});
