import { create } from "@bufbuild/protobuf";
import { waitsOf } from "@plinth/documents";
import {
	PlanDeletionResponse_Outcome as Outcome,
	PlanDeletionResponseSchema,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { expect, it } from "vitest";

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
