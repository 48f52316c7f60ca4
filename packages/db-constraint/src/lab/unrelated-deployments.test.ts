import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { OwnerReferenceSchema, type Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { deletionTimestampKey, isMarkedForDeletion, referenceTo } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { ResourceShadow } from "../shadow/shadow-records.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import { establishWithSuccessor, reestablishOwnReferences } from "../succession/succession.ts";
import { Lab, type LabDeployment, make } from "./lab.fixture.ts";

const never = new AbortController().signal;

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

/** Establishes the references of a successor. */
async function settle(lab: Lab, { current, info }: LabDeployment) {
	await lab.run(reestablishOwnReferences(current.constraints.context, never));
	Object.assign(info, { established: true });
	lab.changed();
}

/** `w` of beta references `a` of alpha by BLOCK. */
async function referenced() {
	const { lab, alpha, beta, owner: target } = await twoServices();
	const needs = { ...referenceTo({ type: Thing.type, name: "a" }), region: "r1" };
	const user = await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { needs }))));
	await lab.pass(1_000);
	const [a, w] = [alpha.id(Thing, "a"), beta.id(Widget, "w")];
	return { lab, alpha, beta, target, user, needs, a, w };
}

/** `w` of beta references `a` twice: by CASCADE that of alpha, and by BLOCK that of alpha-2, which registered later. */
async function referencedInBoth() {
	const { lab, alpha, beta, owner: first } = await twoServices();
	const reference = { ...referenceTo({ type: Thing.type, name: "a" }), region: "r1" };
	const widget = (init: MessageInitShape<typeof WidgetSchema>) =>
		make(Widget, "w", create(WidgetSchema, { belongsTo: reference, ...init }));
	await lab.run(beta.write(widget({})));
	await lab.pass(1_000);
	const second = await addEmpty(lab, alpha);
	const target = await lab.run(second.write(make(Thing, "a", create(ThingSchema))));
	const user = await lab.run(beta.write(widget({ needs: reference })));
	await lab.pass(60_000);
	const [a, w] = [second.id(Thing, "a"), beta.id(Widget, "w")];
	const cascades = {
		path: "belongs_to",
		targetUid: first.id?.uid,
		deploymentUid: alpha.info.uid,
	};
	const blocks = { path: "needs", targetUid: target.id?.uid, deploymentUid: second.info.uid };
	expect((await beta.shadow(w))?.outgoing).toMatchObject([cascades, blocks]);
	return { lab, alpha, second, beta, target, user, a, w, cascades, blocks };
}

/** The resource, marked for deletion. */
function marked(resource: Resource): Resource {
	const deletion = { [deletionTimestampKey]: new Date(0).toISOString(), finalizers: "test/keep" };
	return { ...resource, metadata: { ...resource.metadata, ...deletion } };
}

/** A schema of beta in which some fields of the widget have other rules. */
function schemaOf(beta: LabDeployment, rules: Parameters<typeof withRules>[1]) {
	const types = [withRules(Widget, rules)];
	const descriptor = new ServiceDescriptor({ types, foreignTypes: [Thing], service: "beta" });
	const pass = new SchemaPass({ ...beta.current.constraints.context, descriptor });
	return { descriptor, pass };
}

/** Beta makes such a schema active. */
async function passTo(beta: LabDeployment, rules: Parameters<typeof withRules>[1]): Promise<void> {
	const { pass } = schemaOf(beta, rules);
	await pass.begin();
	await pass.complete(never);
}

/** What a backup of beta has. */
async function backupOf(beta: LabDeployment, user: Resource): Promise<readonly Resource[]> {
	const { resources: shadows } = await beta.backend.list({
		type: ResourceShadow.type,
		tenancy: { partition: "", namespace: "" },
		namePrefix: "s-",
	});
	return [user, ...shadows];
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

	it("gets no references that are held elsewhere when a server of their holder starts again", async () => {
		const { lab, alpha, beta, target, a, w } = await referenced();
		const restored = await lab.succeed(alpha, [target]);
		await settle(lab, restored);
		await lab.pass(60_000);
		await addEmpty(lab, restored);
		beta.crash();
		await lab.run(beta.start());
		await lab.pass(60_000);
		expect((await beta.shadow(w))?.outgoing).toMatchObject([
			{ targetUid: target.id?.uid, deploymentUid: restored.info.uid },
		]);
		await expect(lab.run(restored.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
	});

	it("gets none when their holder is restored", async () => {
		const { lab, alpha, beta, target, user, a, w } = await referenced();
		await addEmpty(lab, alpha);
		const restored = await lab.succeed(beta, await backupOf(beta, user));
		await settle(lab, restored);
		expect((await restored.shadow(w))?.outgoing).toMatchObject([
			{ targetUid: target.id?.uid, deploymentUid: alpha.info.uid },
		]);
		await lab.pass(60_000);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
	});

	it("gets none while the deployment that they record is not known", async () => {
		const { lab, alpha, beta, user, a, w } = await referenced();
		const backup = await backupOf(beta, user);
		// Beta is restored to before it has released its reference.
		await lab.run(beta.write(make(Widget, "w", create(WidgetSchema))));
		await lab.pass(60_000);
		expect((await alpha.shadow(a))?.sources ?? []).toEqual([]);
		await addEmpty(lab, alpha);
		lab.deployments.delete("alpha");
		lab.changed();
		const restored = await lab.succeed(beta, backup);
		await expect(settle(lab, restored)).rejects.toThrow("whose deployment is currently unknown");
		lab.deployments.set("alpha", alpha);
		lab.changed();
		await settle(lab, restored);
		await lab.pass(60_000);
		expect((await restored.shadow(w))?.outgoing).toMatchObject([{ deploymentUid: alpha.info.uid }]);
		expect((await alpha.shadow(a))?.sources).toMatchObject([
			{ deployment: { uid: restored.info.uid }, rules: [OnDelete.BLOCK] },
		]);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
	});

	it.each(["with the target", "without it", "down"])(
		"gets no references that are held elsewhere when a schema changes their rule (%s)",
		async (state) => {
			const { lab, alpha, beta, target, a, w } = await referenced();
			const empty = await addEmpty(lab, alpha);
			if (state === "with the target") {
				await lab.run(empty.write(make(Thing, "a", create(ThingSchema))));
			} else if (state === "down") {
				empty.crash();
			}
			await lab.run(passTo(beta, { needs: OnDelete.CASCADE }));
			expect((await beta.shadow(w))?.outgoing).toMatchObject([
				{
					rule: OnDelete.CASCADE,
					targetUid: target.id?.uid,
					deploymentUid: alpha.info.uid,
				},
			]);
			expect((await alpha.shadow(a))?.sources).toMatchObject([
				{ rules: expect.arrayContaining([OnDelete.CASCADE]) },
			]);
		},
	);

	it("gets none when their holder writes the resource after a schema has changed their rule", async () => {
		const { lab, alpha, beta, target, w } = await referenced();
		await addEmpty(lab, alpha);
		const { descriptor, pass } = schemaOf(beta, { needs: OnDelete.CASCADE });
		await lab.run(pass.begin());
		const stored = await beta.read(w);
		if (stored === undefined) {
			throw new Error("the widget does not exist");
		}
		const put = { op: "put", resource: stored, expectedVersion: stored.version } as const;
		await lab.run(beta.withDescriptor(descriptor).commit([put]));
		const held = { targetUid: target.id?.uid, deploymentUid: alpha.info.uid };
		expect((await beta.shadow(w))?.outgoing).toMatchObject([{ rule: OnDelete.BLOCK, ...held }]);
		await lab.run(pass.complete(never));
		expect((await beta.shadow(w))?.outgoing).toMatchObject([{ rule: OnDelete.CASCADE, ...held }]);
	});

	it("gets none when a schema changes their rule, and the deployment that they record is not known", async () => {
		const { lab, alpha, beta, target, w } = await referenced();
		const empty = await addEmpty(lab, alpha);
		await lab.run(empty.write(make(Thing, "a", create(ThingSchema))));
		lab.deployments.delete("alpha");
		const rules = { needs: OnDelete.CASCADE };
		await expect(lab.run(passTo(beta, rules))).rejects.toThrow(
			"whose deployment is currently unknown",
		);
		const held = { targetUid: target.id?.uid, deploymentUid: alpha.info.uid };
		expect((await beta.shadow(w))?.outgoing).toMatchObject([{ rule: OnDelete.BLOCK, ...held }]);
		lab.deleted.add(alpha.info.uid);
		await lab.run(passTo(beta, rules));
		expect((await beta.shadow(w))?.outgoing).toMatchObject([{ rule: OnDelete.CASCADE, ...held }]);
	});

	it("need not respond when those with a successor are established again", async () => {
		const { lab, alpha, beta, target, needs, a, w } = await referenced();
		const empty = await addEmpty(lab, alpha);
		await lab.run(empty.write(make(Thing, "b", create(ThingSchema))));
		const likes = [{ ...referenceTo({ type: Thing.type, name: "b" }), region: "r1" }];
		await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { needs, likes }))));
		await lab.pass(1_000);
		empty.crash();
		const restored = await lab.succeed(alpha, [target]);
		await settle(lab, restored);
		await lab.pass(60_000);
		const { outgoing = [] } = (await beta.shadow(w)) ?? {};
		expect(outgoing.map(({ deploymentUid }) => deploymentUid).sort()).toEqual(
			[empty.info.uid, restored.info.uid].sort(),
		);
		expect((await restored.shadow(a))?.sources).toHaveLength(1);
	});

	it("does not decide that a target is missing whose deployment is not known", async () => {
		const { lab, alpha, beta, target, a, w } = await referenced();
		const restored = await lab.succeed(alpha, [target]);
		Object.assign(restored.info, { predecessorUid: "01JDXXXXXXXXXXXXXXXXXXXXXX" });
		lab.deployments.delete("alpha");
		const empty = await addEmpty(lab, restored);
		const { context } = beta.current.constraints;
		Object.assign(empty.info, { predecessorUid: "01JDYYYYYYYYYYYYYYYYYYYYYY" });
		await lab.run(establishWithSuccessor(context, empty.info, never));
		const held = { targetUid: target.id?.uid, deploymentUid: alpha.info.uid };
		expect((await beta.shadow(w))?.outgoing).toMatchObject([held]);
		await lab.run(establishWithSuccessor(context, restored.info, never));
		const now = { ...held, deploymentUid: restored.info.uid };
		expect((await beta.shadow(w))?.outgoing).toMatchObject([now]);
		expect((await restored.shadow(a))?.sources).toHaveLength(1);
	});
});

describe("references of one resource to a target of the same name in two deployments of a place", () => {
	it("hold what each of them records when one deployment is deleted, and the other one restored", async () => {
		const { lab, alpha, second, beta, target, a, w, cascades, blocks } = await referencedInBoth();
		lab.retire(alpha);
		const restored = await lab.succeed(second, [target]);
		await settle(lab, restored);
		await lab.pass(60_000);
		expect((await beta.shadow(w))?.outgoing).toMatchObject([
			cascades,
			{ ...blocks, deploymentUid: restored.info.uid },
		]);
		await expect(lab.run(restored.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
	});

	it("do not look lost because another one of them does", async () => {
		const { lab, alpha, second, beta, target, a, w, cascades, blocks } = await referencedInBoth();
		lab.retire(alpha);
		const deleting = marked(target);
		expect(isMarkedForDeletion(deleting)).toBe(true);
		const restored = await lab.succeed(second, [deleting]);
		await settle(lab, restored);
		await lab.pass(60_000);
		expect((await beta.shadow(w))?.outgoing).toMatchObject([
			cascades,
			{ ...blocks, deploymentUid: restored.info.uid },
		]);
		expect((await restored.shadow(a))?.sources).toMatchObject([{ rules: [OnDelete.BLOCK] }]);
	});

	it("are established again with the successor of the deployment that each of them records", async () => {
		const { lab, second, beta, target, a, w, cascades, blocks } = await referencedInBoth();
		const restored = await lab.succeed(second, [target]);
		await settle(lab, restored);
		await lab.pass(60_000);
		expect((await beta.shadow(w))?.outgoing).toMatchObject([
			cascades,
			{ ...blocks, deploymentUid: restored.info.uid },
		]);
		expect((await restored.shadow(a))?.sources).toMatchObject([{ rules: [OnDelete.BLOCK] }]);
		await expect(lab.run(restored.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
	});

	it("stay in both when their holder is restored", async () => {
		const { lab, alpha, second, beta, user, a, w, cascades, blocks } = await referencedInBoth();
		const restored = await lab.succeed(beta, await backupOf(beta, user));
		await settle(lab, restored);
		await lab.pass(60_000);
		expect((await restored.shadow(w))?.outgoing).toMatchObject([cascades, blocks]);
		const sourceAt = async (deployment: LabDeployment) =>
			(await deployment.shadow(a))?.sources.find(
				(each) => each.deployment?.uid === restored.info.uid,
			);
		expect(await sourceAt(alpha)).toMatchObject({ rules: [OnDelete.CASCADE], tentative: false });
		expect(await sourceAt(second)).toMatchObject({ rules: [OnDelete.BLOCK], tentative: false });
		await expect(lab.run(second.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
	});

	it("wait for a deployment that is not known, though that of another one of them was deleted", async () => {
		const { lab, alpha, second, beta, user, w, cascades, blocks } = await referencedInBoth();
		lab.retire(alpha);
		lab.deployments.delete("alpha-2");
		const restored = await lab.succeed(beta, await backupOf(beta, user));
		await expect(settle(lab, restored)).rejects.toThrow("whose deployment is currently unknown");
		lab.deployments.set("alpha-2", second);
		lab.changed();
		await settle(lab, restored);
		expect((await restored.shadow(w))?.outgoing).toMatchObject([cascades, blocks]);
	});
});
