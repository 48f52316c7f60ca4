import { describe, expect, it } from "vitest";
import { deploymentAuthorizer, insecureAllowAll } from "./open-access.ts";
import {
	allowsEverywhere,
	type Policy,
	PolicyAuthorizer,
	type PolicyRule,
	policyOf,
	tokenHash,
} from "./policy-authorizer.ts";

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

describe("the policy of an access", () => {
	it("says all of what it allows, for tokens and if no tokens are needed, and is none of the deployment's", () => {
		const authorizer = new PolicyAuthorizer();
		authorizer.grant("token", reader);
		expect(policyOf(authorizer.authenticate("token"))).toBe(reader);
		const [open, deployment] = [insecureAllowAll.tokenless, deploymentAuthorizer.tokenless];
		expect(open && policyOf(open)).toEqual({ subject: "anyone", rules: [{ operations: ["*"] }] });
		expect(deployment && policyOf(deployment)).toBeUndefined();
	});

	it.each<readonly [boolean, PolicyRule]>([
		[true, { operations: ["operator:read"] }],
		[true, { operations: ["*"], type: "demo.*" }],
		[true, { operations: ["operator:read"], namePrefix: "" }],
		[false, { operations: ["operator:write"] }],
		[false, { operations: ["operator:read"], type: "demo.v2.Artist" }],
		[false, { operations: ["operator:read"], namePrefix: "a" }],
		[false, { operations: ["operator:read"], partition: "default" }],
		[false, { operations: ["operator:read"], namespace: "default" }],
	])("allows reads of a type everywhere: %s, by the rule %j", (isAllowed, rule) => {
		const type = { group: "demo", groupVersion: "v1", kind: "Artist" };
		expect(allowsEverywhere({ subject: "reader", rules: [rule] }, "operator:read", type)).toBe(
			isAllowed,
		);
	});
});
