import { create } from "@bufbuild/protobuf";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { defineType } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { ThingSchema as ThingV2Schema } from "../../testdata/gen/acme/alpha/v2/thing_pb.ts";
import { Thing, ThingSchema, Widget } from "../../testdata/types.ts";
import { Lab, type LabDeployment, make } from "../lab/lab.fixture.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { routeTo } from "./holder-query.ts";

const ThingV2 = defineType(ThingV2Schema);
const user = { caller: { case: "user", value: { token: "" } } } as const;
const deployment = { caller: { case: "deployment", value: {} } } as const;

/** `alpha` in version v1 in one region, and in version v2 in another one, each with a thing. */
async function twoVersions() {
	const lab = new Lab(1);
	const v1 = await lab.add({ name: "alpha-1", service: "alpha", region: "r1", types: [Thing] });
	const v2 = await lab.add({ name: "alpha-2", service: "alpha", region: "r2", types: [ThingV2] });
	const beta = await lab.add({
		name: "beta",
		service: "beta",
		region: "r1",
		types: [Widget],
		foreignTypes: [Thing],
	});
	await lab.run(v1.write(make(Thing, "a", create(ThingSchema))));
	await lab.run(v2.write(make(ThingV2, "a", create(ThingV2Schema))));
	const request = (to: LabDeployment, groupVersion: string) => ({
		route: routeTo(beta.current.constraints.context, to.info.uid),
		targets: [
			{ key: keyOf(to.id(Thing, "a"), to.info.region), rules: [OnDelete.BLOCK], groupVersion },
		],
	});
	const establish = (
		to: LabDeployment,
		groupVersion: string,
		caller: typeof user | typeof deployment,
	) => lab.run(lab.client(beta, to).establishReferences({ ...request(to, groupVersion), caller }));
	const authorize = (to: LabDeployment, groupVersion: string) =>
		lab.run(
			lab.client(beta, to).authorizeReferences({ ...request(to, groupVersion), caller: user }),
		);
	return { v1, v2, establish, authorize };
}

describe("a reference to a version that the target's deployment does not serve", () => {
	it("is refused by name", async () => {
		const { v1, v2, establish, authorize } = await twoVersions();
		const nonsense = "alpha in r1 does not serve alpha.v99-nonsense.Thing, only v1";
		await expect(establish(v1, "v99-nonsense", user)).rejects.toThrow(nonsense);
		await expect(authorize(v1, "v99-nonsense")).rejects.toThrow(nonsense);
		await expect(establish(v2, "v1", user)).rejects.toThrow(
			"alpha in r2 does not serve alpha.v1.Thing, only v2",
		);
		expect((await establish(v1, "v1", user)).established).toHaveLength(1);
		expect((await establish(v2, "v2", user)).established).toHaveLength(1);
	});

	it("is accepted from a deployment that has it already", async () => {
		const { v2, establish } = await twoVersions();
		expect((await establish(v2, "v1", deployment)).established).toHaveLength(1);
	});
});
