import { create } from "@bufbuild/protobuf";
import { referenceTo } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { establishWithSuccessor, reestablishOwnReferences } from "../succession/succession.ts";
import { Lab, type LabDeployment, make } from "./lab.fixture.ts";

const never = new AbortController().signal;

/** `w` of beta references `a` of alpha. */
async function referenced() {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add({
		name: "beta",
		service: "beta",
		region: "r1",
		types: [Widget],
		foreignTypes: [Thing],
	});
	const needs = referenceTo({ type: Thing.type, name: "a" });
	const target = await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
	const user = await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { needs }))));
	await lab.pass(1_000);
	return { lab, alpha, beta, a: alpha.id(Thing, "a"), target, user };
}

/** Restores the backup of a deployment that was restored before, whose Deployment stays. */
async function restoreAgain(
	lab: Lab,
	first: LabDeployment,
	second: LabDeployment,
	resources: Parameters<Lab["succeed"]>[1],
) {
	const third = await lab.succeed(second, resources);
	const { predecessorUid } = second.info;
	Object.assign(third.info, { predecessorUid, otherPredecessorUids: [second.info.uid] });
	lab.deployments.set(`${first.spec.name}-first`, first);
	lab.deployments.set(`${first.spec.name}-second`, second);
	lab.changed();
	return third;
}

/** Establishes the references of a successor. */
async function settle(lab: Lab, { current, info }: LabDeployment) {
	await lab.run(reestablishOwnReferences(current.constraints.context, never));
	Object.assign(info, { established: true });
}

describe("a deployment whose backup is restored a second time", () => {
	it("deletes without waiting for the first restore, which no longer runs", async () => {
		const { lab, alpha, beta, a, target } = await referenced();
		const second = await lab.succeed(alpha, [target]);
		const third = await restoreAgain(lab, alpha, second, [target]);
		await settle(lab, third);
		await expect(lab.run(third.delete(a))).rejects.toThrow(
			`waits for beta in r1 (Deployment beta, uid ${beta.info.uid}) to establish`,
		);
		const { context } = beta.current.constraints;
		await lab.run(establishWithSuccessor(context, third.info, never));
		expect(context.dropped.successorOf(second.info.uid)).toBe(third.info.uid);
		await lab.run(beta.delete(beta.id(Widget, "w")));
		await lab.run(third.delete(a));
		expect(await third.read(a)).toBeUndefined();
	});

	it("is responsible for the sources of the first restore, even if that was never established", async () => {
		const { lab, alpha, beta, a, user } = await referenced();
		const second = await lab.succeed(beta, [user]);
		const third = await restoreAgain(lab, beta, second, [user]);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("its successor has not established yet");
		await settle(lab, third);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
		await lab.run(third.delete(third.id(Widget, "w")));
		await lab.run(alpha.delete(a));
		expect(await alpha.read(a)).toBeUndefined();
	});
});
