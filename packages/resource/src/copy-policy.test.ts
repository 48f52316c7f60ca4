import { create } from "@bufbuild/protobuf";
import { CopyPolicySchema } from "@plinth/proto/gen/plinth/meta/v1/copy_policy_pb.js";
import { describe, expect, it } from "vitest";
import { checkCopyPolicy } from "./copy-policy.ts";

const check = (...regions: string[]) => checkCopyPolicy(create(CopyPolicySchema, { regions }));

describe("a policy of copies", () => {
	it("names regions, or none", () => {
		checkCopyPolicy(undefined);
		check();
		check("us-west2", "us-east1");
		check(...Array.from({ length: 64 }, (_, at) => `r${at}`));
	});

	it("is refused with the entry that is wrong", () => {
		expect(() => check("us-west2", "")).toThrow(
			'copies.regions[1] invalid: must consist of lower-case letters, digits and hyphens, and start and end with a letter or digit, got: ""',
		);
		expect(() => check("US")).toThrow('got: "US"');
		expect(() => check("*")).toThrow("copies.regions[0] invalid: must consist of");
		expect(() => check("a".repeat(64))).toThrow("must be at most 63 characters long");
		expect(() => check("r1", "r2", "r1")).toThrow("copies.regions[2] invalid: r1 is named twice");
		expect(() => check(...Array.from({ length: 65 }, (_, at) => `r${at}`))).toThrow(
			"copies.regions has 65 entries, more than 64",
		);
	});
});
