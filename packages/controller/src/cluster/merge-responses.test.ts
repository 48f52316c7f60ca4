import { create } from "@bufbuild/protobuf";
import {
	ListReconcilesResponseSchema,
	ReconcileState,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { expect, it } from "vitest";
import { mergeReconciles } from "./merge-responses.ts";

const { ELSEWHERE, IDLE } = ReconcileState;

/** The report of a server on one resource, of the controller `singers`. */
function report(name: string, state: ReconcileState) {
	return {
		server: { name, address: "", startedAtMs: 0, version: "" },
		response: create(ListReconcilesResponseSchema, {
			reconciles: [{ controller: "singers", key: "demo.Artist/miles", state, server: name }],
		}),
	};
}

it("what controllers do with a resource is that of the server that reconciles it", () => {
	const { reconciles } = mergeReconciles([report("a", ELSEWHERE), report("b", IDLE)]);
	expect(reconciles).toMatchObject([{ controller: "singers", state: IDLE, server: "b" }]);
});

it("no server is named if the one that reconciles it has not reported", () => {
	const missing = { ...report("c", IDLE), response: undefined, missing: "can't be reached" };
	const merged = mergeReconciles([report("a", ELSEWHERE), report("b", ELSEWHERE), missing]);
	expect(merged.reconciles).toMatchObject([{ state: ELSEWHERE, server: "" }]);
	expect(merged.servers).toMatchObject([{}, {}, { name: "c", missing: "can't be reached" }]);
});
