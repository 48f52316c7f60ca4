import { PlanDeletionResponse_Outcome as Outcome } from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { describe, expect, it } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { planDeletion } from "../exchanges/plan.fixture.ts";
import { thing, to, twoDeployments, widget } from "../lab/things.fixture.ts";

/** A thing that a widget of another deployment references by BLOCK, and that deployment has stopped. */
async function heldByStopped() {
	const { lab, alpha, beta } = await twoDeployments();
	const target = await lab.run(alpha.write(thing("a")));
	await lab.run(beta.write(widget("w", { needs: to("a") })));
	await lab.pass(1_000);
	beta.crash();
	return { lab, alpha, beta, target };
}

describe("the plan of a deletion", () => {
	it("names a deployment that is not reached, which may block", async () => {
		const { alpha, target } = await heldByStopped();
		const { outcome, effects } = await planDeletion(alpha, target);
		expect(outcome).toBe(Outcome.REFUSED);
		expect(effects?.[0]?.unknown).toEqual([expect.stringContaining("not reached")]);
	});

	it("expects no holders in a deployment that was deleted, as the deletion does", async () => {
		const { lab, alpha, beta, target } = await heldByStopped();
		lab.retire(beta);
		const { outcome, effects } = await planDeletion(alpha, target);
		expect(outcome).toBe(Outcome.DELETED);
		expect(effects).toHaveLength(1);
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		await lab.pass(1_000);
		expect(await alpha.read(alpha.id(Thing, "a"))).toBeUndefined();
	});
});
