import { create } from "@bufbuild/protobuf";
import { OwnerReferenceSchema, type Resource } from "@plinth/proto";
import { referenceTo } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { Lab, type LabDeployment, make } from "./lab.fixture.ts";

/** `alpha` has the owner `a`, and `beta` stores what is owned by it. */
async function twoServices() {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add({
		name: "beta",
		service: "beta",
		region: "r2",
		types: [Widget],
		foreignTypes: [Thing],
	});
	const owner = await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
	return { lab, alpha, beta, owner };
}

/** Adds a deployment of alpha in r1 with an empty storage, which is found before the other one. */
async function addEmpty(lab: Lab, alpha: LabDeployment): Promise<LabDeployment> {
	lab.deployments.delete("alpha");
	const empty = await lab.add({ name: "alpha-2", service: "alpha", region: "r1", types: [Thing] });
	lab.deployments.set("alpha", alpha);
	lab.changed();
	return empty;
}

function ownerReference(owner: Resource, init: { readonly requiresOwnerReference?: boolean } = {}) {
	const { type, tenancy, name = "", uid = "" } = owner.id ?? {};
	return create(OwnerReferenceSchema, {
		...(type && { type }),
		...(tenancy && { tenancy }),
		...{ name, uid, region: "r1", ...init },
	});
}

function owned(owner: Resource) {
	const widget = make(Widget, "w", create(WidgetSchema));
	widget.ownerReferences = [ownerReference(owner)];
	return widget;
}

describe("a second deployment of a service in a region, with another storage", () => {
	it("does not decide whether an owner exists that the first one stores", async () => {
		const { lab, alpha, beta, owner } = await twoServices();
		await addEmpty(lab, alpha);
		await lab.run(beta.write(owned(owner)));
		await lab.pass(120_000);
		expect((await beta.shadow(beta.id(Widget, "w")))?.metaOwners).toMatchObject([
			{ valid: true, deploymentUid: alpha.info.uid },
		]);
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		await lab.pass(120_000);
		expect(await beta.read(beta.id(Widget, "w"))).toBeUndefined();
	});

	it("is not asked about an owner that the first one has confirmed", async () => {
		const { lab, alpha, owner } = await twoServices();
		const gamma = await lab.add({ name: "gamma", service: "alpha", region: "r2", types: [Thing] });
		const o = gamma.id(Thing, "o");
		await lab.run(gamma.write(make(Thing, "o", create(ThingSchema))));
		const likes = [{ ...referenceTo({ type: Thing.type, name: "o" }), region: "r2" }];
		await lab.run(alpha.write(make(Thing, "a", create(ThingSchema, { likes }))));
		const ownee = make(Thing, "o", create(ThingSchema));
		ownee.ownerReferences = [ownerReference(owner, { requiresOwnerReference: true })];
		await lab.run(gamma.write(ownee));
		await lab.pass(40_000);
		expect((await gamma.shadow(o))?.metaOwners).toMatchObject([{ valid: true }]);
		await addEmpty(lab, alpha);
		await lab.pass(180_000);
		expect((await gamma.shadow(o))?.metaOwners).toMatchObject([{ valid: true }]);
	});

	it("proves nothing while the first one can't be queried", async () => {
		const { lab, alpha, beta, owner } = await twoServices();
		await addEmpty(lab, alpha);
		alpha.crash();
		await lab.run(beta.write(owned(owner)));
		await lab.pass(120_000);
		expect((await beta.read(beta.id(Widget, "w")))?.status.references?.conditions).toMatchObject([
			{ type: "OwnersKnown", message: expect.stringContaining("alpha in r1 can't be queried") },
		]);
		await lab.run(alpha.start());
		await lab.pass(120_000);
		expect((await beta.shadow(beta.id(Widget, "w")))?.metaOwners).toMatchObject([{ valid: true }]);
	});

	it("does not keep alive what is owned by a resource that no deployment has", async () => {
		const { lab, alpha, beta, owner } = await twoServices();
		await addEmpty(lab, alpha);
		const gone = { ...owner, id: { ...owner.id!, uid: "01JDXXXXXXXXXXXXXXXXXXXXXX" } };
		await lab.run(beta.write(owned(gone)));
		await lab.pass(120_000);
		expect(await beta.read(beta.id(Widget, "w"))).toBeUndefined();
	});

	it("is not alone while a meta deployment has not been read, which may know another", async () => {
		const { lab, alpha, beta, owner } = await twoServices();
		await addEmpty(lab, alpha);
		lab.deployments.delete("alpha");
		const { environment } = beta.current.constraints.context;
		Object.assign(environment, { isComplete: false });
		await lab.run(beta.write(owned(owner)));
		await lab.pass(120_000);
		expect(await beta.read(beta.id(Widget, "w"))).toBeDefined();
		Object.assign(environment, { isComplete: true });
		lab.deployments.set("alpha", alpha);
		lab.changed();
		await lab.pass(120_000);
		expect((await beta.shadow(beta.id(Widget, "w")))?.metaOwners).toMatchObject([{ valid: true }]);
	});
});
