import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { restore } from "../deployments/settling.fixture.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import { establishWithSuccessor, reestablishOwnReferences } from "../succession/succession.ts";
import type { Lab, LabDeployment } from "./lab.fixture.ts";
import { thing, thingsInTwoRegions, to, widget } from "./things.fixture.ts";

const never = new AbortController().signal;

/** `w` of beta references by BLOCK `a` of alpha, and by another rule `b` of another deployment. */
async function referenced() {
	const { lab, things, alpha, far, beta } = await thingsInTwoRegions();
	const a = await lab.run(alpha.write(thing("a")));
	const x = await lab.run(alpha.write(thing("x")));
	await lab.run(far.write(thing("b")));
	await lab.run(beta.write(widget("w", { needs: to("a"), belongsTo: to("b", "r2") })));
	await lab.pass(3_000);
	const w = beta.id(Widget, "w");
	return {
		...{ lab, alpha, far, beta, a, x, things },
		/** What the shadow of the widget records, by field. */
		recorded: async () =>
			new Map(((await beta.shadow(w))?.outgoing ?? []).map((each) => [each.path, each])),
	};
}

/** Restores a deployment, which serves before the others have noticed. */
async function succeed(lab: Lab, deployment: LabDeployment, stored: Parameters<Lab["succeed"]>[1]) {
	const restored = await lab.succeed(deployment, stored);
	await lab.run(reestablishOwnReferences(restored.current.constraints.context, never));
	return restored;
}

describe("a report to a successor", () => {
	it("needs no other deployment, in which a reference of the resource has no target", async () => {
		const { lab, alpha, far, beta, a, x, recorded } = await referenced();
		const lost = await restore(lab, far);
		expect((await recorded()).get("belongs_to")?.targetUid).toBe("");
		beta.crash();
		const restored = await restore(lab, alpha, [a, x]);
		lost.crash();
		await lab.run(beta.start());
		await lab.pass(300_000);
		expect((await recorded()).get("needs")?.deploymentUid).toBe(restored.info.uid);
		await lab.run(restored.delete(restored.id(Thing, "x")));
		expect(await restored.read(restored.id(Thing, "x"))).toBeUndefined();
	});

	it.each(["is unknown", "is unknown, and another one is found in its place", "is down"])(
		"needs no other deployment that holds a reference whose rule a schema changes: it %s",
		async (state) => {
			const { lab, alpha, far, beta, a, things, recorded } = await referenced();
			const types = [withRules(Widget, { belongs_to: OnDelete.UNSET })];
			const descriptor = new ServiceDescriptor({ types, foreignTypes: [Thing], service: "beta" });
			const context = { ...beta.current.constraints.context, descriptor };
			const pass = new SchemaPass(context);
			await lab.run(pass.begin());
			const before = (await recorded()).get("belongs_to");
			if (state === "is down") {
				far.crash();
			} else {
				lab.deployments.delete("far");
			}
			if (state.endsWith("in its place")) {
				await lab.add({ ...things, name: "far-2", region: "r2" });
			}
			lab.changed();
			const restored = await succeed(lab, alpha, [a]);
			await lab.run(establishWithSuccessor(context, restored.info, never));
			expect((await recorded()).get("needs")?.deploymentUid).toBe(restored.info.uid);
			expect((await recorded()).get("belongs_to")).toEqual(before);
		},
	);

	it("needs no other deployment of the place, in which a target without a deployment would be looked up", async () => {
		const { lab, alpha, beta, a, x, things, recorded } = await referenced();
		await lab.run(alpha.write(thing("lost")));
		await lab.run(beta.write(widget("w", { needs: to("a"), likes: [to("lost")] })));
		await lab.pass(3_000);
		const first = await restore(lab, alpha, [a, x]);
		expect((await recorded()).get("likes")?.targetUid).toBe("");
		lab.deployments.delete("alpha");
		const found = await lab.add({ ...things, name: "alpha-2", region: "r1" });
		lab.deployments.set("alpha", first);
		found.crash();
		const restored = await succeed(lab, first, [a, x]);
		await lab.run(establishWithSuccessor(beta.current.constraints.context, restored.info, never));
		expect((await recorded()).get("needs")?.deploymentUid).toBe(restored.info.uid);
		expect((await recorded()).get("likes")?.targetUid).toBe("");
	});
});
