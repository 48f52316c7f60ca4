import { create } from "@bufbuild/protobuf";
import {
	PlanDeletionResponse_Outcome as Outcome,
	PlanDeletionResponseSchema,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { expect, it } from "vitest";
import { waitsOf } from "./deletion-plan.ts";

it("says in words what finalizers of the server wait for, and names all others", () => {
	const plan = create(PlanDeletionResponseSchema, {
		outcome: Outcome.WAITS,
		effects: [
			{ finalizers: ["tenancy.plinth.dev/contents", "example.com/drained", "constructor"] },
		],
	});
	expect(waitsOf(plan)).toEqual([
		"its contents to be deleted",
		"example.com/drained",
		"constructor",
	]);
});
