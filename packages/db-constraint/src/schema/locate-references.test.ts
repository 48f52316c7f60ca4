import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { ResourceKeySchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { describe, expect, it } from "vitest";
import { localEnvironment } from "../registry/local-environment.ts";
import { deploymentOf } from "./locate-references.ts";

const reference = {
	path: "likes[0]",
	service: "alpha",
	target: create(ResourceKeySchema, { group: "alpha", kind: "Thing", name: "a", region: "r2" }),
};

describe("a reference to a region without a known deployment", () => {
	const environment = localEnvironment("uid", "beta");

	it("is refused permanently if all deployments are known", () => {
		expect(() => deploymentOf({ environment }, reference)).toThrow(
			expect.objectContaining({ code: Code.FailedPrecondition }),
		);
	});

	it("may be retried if some deployments may not be known yet", () => {
		expect(() =>
			deploymentOf({ environment: { ...environment, isComplete: false } }, reference),
		).toThrow(expect.objectContaining({ code: Code.Unavailable }));
	});
});
