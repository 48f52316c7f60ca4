import { create } from "@bufbuild/protobuf";
import { Condition_State, OwnerReferenceSchema } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { CheckMetaOwnersResponse_Verdict as Verdict } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { type ResourceType, referenceTo } from "@plinth/resource";
import {
	CasFailure,
	decorateBackend,
	type Mutation,
	type StorageBackend,
	StorageUnavailable,
} from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { deployedOf } from "../shadow/shadow.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";
import { Lab, make } from "./lab.fixture.ts";
import { referenced, writeAsUser } from "./shared-targets.fixture.ts";
import { thing, to } from "./things.fixture.ts";

const { BLOCK } = OnDelete;

/** `alpha` has `a`, which resources of `beta` may reference. @param backend - decorates the storage of `beta`. */
async function twoServices(backend: (backend: StorageBackend) => StorageBackend = (same) => same) {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add(
		{ name: "beta", service: "beta", region: "r2", types: [Widget], foreignTypes: [Thing] },
		backend,
	);
	const a = await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
	const to = { ...referenceTo({ type: Thing.type, name: "a" }), region: "r1" };
	return { lab, alpha, beta, a, w: beta.id(Widget, "w"), to, uid: a.id?.uid ?? "" };
}

/** `beta` has `w`, whose owner is `a` of `alpha`. */
async function withOwnee() {
	const { lab, alpha, beta, w, to, uid } = await twoServices();
	const widget = make(Widget, "w", create(WidgetSchema));
	const { section: _, $typeName: __, ...owner } = to;
	widget.ownerReferences = [create(OwnerReferenceSchema, { ...owner, uid })];
	await lab.run(beta.write(widget));
	await lab.pass(5_000);
	expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ valid: true }]);
	return { lab, alpha, beta, w };
}

const noDeployment = {
	type: "OwnersKnown",
	state: Condition_State.FALSE,
	message:
		'kept until it is known: alpha.Thing default/default/a (r1): no deployment is known that stores alpha in region "r1"',
};

/** Whether a mutation puts a resource of a type. */
function puts({ type }: ResourceType) {
	return (each: Mutation) => each.op === "put" && each.resource.id?.type?.kind === type.kind;
}

describe("references to a deleted deployment", () => {
	it("are cleared if their rule is UNSET", async () => {
		const { lab, alpha, beta, w, to } = await twoServices();
		await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { likes: [to], note: "n" }))));
		await lab.pass(5_000);
		lab.retire(alpha);
		await lab.pass(60_000);
		const expected = make(Widget, "w", create(WidgetSchema, { note: "n" }));
		expect((await beta.read(w))?.data).toEqual(expected.data);
		expect((await beta.shadow(w))?.outgoing ?? []).toEqual([]);
	});

	it("are reported and kept if their rule is BLOCK or CASCADE", async () => {
		const { lab, alpha, beta, w, to } = await twoServices();
		await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { belongsTo: to }))));
		await lab.pass(5_000);
		lab.retire(alpha);
		await lab.pass(60_000);
		expect((await beta.read(w))?.status.references?.conditions).toMatchObject([
			{
				type: "TargetsKept",
				state: 2,
				message:
					"references to a deleted deployment: belongs_to: alpha.Thing default/default/a (r1)",
			},
		]);
		await lab.run(beta.delete(w));
		expect(await beta.read(w)).toBeUndefined();
	});

	it("are cleared and reported although users write what has them at the same time", async () => {
		let conflicts = 0;
		const { lab, alpha, beta, w, to } = await twoServices((backend) =>
			decorateBackend(backend, {
				commit: (mutations, options) => {
					if (conflicts > 0 && mutations.some(puts(Widget))) {
						conflicts -= 1;
						throw new CasFailure([0], ["w"]);
					}
					return backend.commit(mutations, options);
				},
			}),
		);
		const data = create(WidgetSchema, { likes: [to], belongsTo: to });
		await lab.run(beta.write(make(Widget, "w", data)));
		await lab.pass(5_000);
		conflicts = 1;
		lab.retire(alpha);
		await lab.pass(60_000);
		expect(conflicts).toBe(0);
		expect((await beta.shadow(w))?.outgoing).toMatchObject([{ path: "belongs_to" }]);
		expect((await beta.read(w))?.status.references?.conditions).toMatchObject([
			{ type: "TargetsKept", state: 2 },
		]);
	});

	it("are cleared although the storage was unavailable", async () => {
		let failures = 0;
		const { lab, alpha, beta, w, to } = await twoServices((backend) =>
			decorateBackend(backend, {
				commit: (mutations, options) => {
					if (failures > 0 && mutations.some(puts(Widget))) {
						failures -= 1;
						throw new StorageUnavailable("the storage has gone");
					}
					return backend.commit(mutations, options);
				},
			}),
		);
		await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { likes: [to] }))));
		await lab.pass(5_000);
		failures = 1;
		lab.retire(alpha);
		await lab.pass(60_000);
		expect(failures).toBe(0);
		expect(beta.failures).toEqual([expect.any(StorageUnavailable)]);
		const expected = make(Widget, "w", create(WidgetSchema));
		expect((await beta.read(w))?.data).toEqual(expected.data);
	});

	it("are forgotten if their resource is deleted before the record of the deletion is read", async () => {
		const { lab, alpha, beta, w, to } = await twoServices();
		await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { likes: [to] }))));
		await lab.pass(5_000);
		const { environment } = beta.current.constraints.context;
		const { isDeleted } = environment;
		const read = Promise.withResolvers<void>();
		let reads = 0;
		Object.assign(environment, {
			isDeleted: (uid: string) => {
				reads += 1;
				return read.promise.then(() => isDeleted(uid));
			},
		});
		lab.retire(alpha);
		await lab.pass(1_000);
		expect(reads).toBe(1);
		await lab.run(beta.delete(w));
		read.resolve();
		await lab.pass(60_000);
		expect(await beta.read(w)).toBeUndefined();
		expect(await beta.shadow(w)).toBeUndefined();
		expect(beta.failures).toEqual([]);
	});

	it("are kept if a successor appears before the record of the deletion is read", async () => {
		const { lab, alpha, beta, a, w, to } = await twoServices();
		await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { likes: [to] }))));
		await lab.pass(5_000);
		const before = await beta.read(w);
		const { environment } = beta.current.constraints.context;
		const { isDeleted } = environment;
		const read = Promise.withResolvers<void>();
		Object.assign(environment, {
			isDeleted: (uid: string) => read.promise.then(() => isDeleted(uid)),
		});
		lab.retire(alpha);
		await lab.pass(1_000);

		const after = await lab.succeed(alpha, [a]);
		const { context } = after.current.constraints;
		await lab.run(reestablishOwnReferences(context, new AbortController().signal));
		Object.assign(after.info, { established: true });
		await lab.pass(5_000);
		const established = [{ deploymentUid: after.info.uid }];
		expect((await beta.shadow(w))?.outgoing).toMatchObject(established);

		read.resolve();
		await lab.pass(60_000);
		expect((await beta.read(w))?.data).toEqual(before?.data);
		expect((await beta.shadow(w))?.outgoing).toMatchObject(established);
	});

	it("are kept while a deployment is only absent", async () => {
		const { lab, alpha, beta, w, to } = await twoServices();
		await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { likes: [to] }))));
		await lab.pass(5_000);
		const before = await beta.read(w);
		lab.retire(alpha);
		lab.deleted.clear();
		await lab.pass(600_000);
		expect(await beta.read(w)).toEqual(before);
	});

	it("are followed by the deletion of its ownees", async () => {
		const { lab, alpha, beta, w } = await withOwnee();
		lab.retire(alpha);
		await lab.pass(120_000);
		expect(await beta.read(w)).toBeUndefined();
	});

	it("are not followed by the deletion of its ownees while the deployment is only absent", async () => {
		const { lab, alpha, beta, w } = await withOwnee();
		lab.retire(alpha);
		lab.deleted.clear();
		await lab.pass(600_000);
		expect((await beta.read(w))?.ownerReferences).toHaveLength(1);
		expect((await beta.read(w))?.status.references?.conditions).toMatchObject([noDeployment]);
		expect(beta.failures).toEqual([]);
	});

	it("are not followed by the deletion of its ownees while the record of the deletion can't be read", async () => {
		const { lab, alpha, beta, w } = await withOwnee();
		const { environment } = beta.current.constraints.context;
		const { isDeleted } = environment;
		Object.assign(environment, {
			isDeleted: () => Promise.reject(new Error("no meta deployment responds")),
		});
		lab.retire(alpha);
		await lab.pass(600_000);
		expect((await beta.read(w))?.status.references?.conditions).toMatchObject([noDeployment]);
		expect(beta.failures).toEqual([]);
		Object.assign(environment, { isDeleted });
		await lab.pass(600_000);
		expect(await beta.read(w)).toBeUndefined();
	});
});

describe("a reference that a user adds beside one to a deployment that was deleted", () => {
	it("is established with the deployment that is found", async () => {
		const world = await referenced({ needs: to("a") }, { needs: BLOCK, belongs_to: BLOCK });
		const { lab, alpha, beta, w } = world;
		lab.retire(alpha);
		await lab.pass(60_000);
		const next = await lab.add({ name: "next", service: "alpha", region: "r1", types: [Thing] });
		const { descriptor } = beta.current.constraints.context;
		const both = { needs: to("a"), belongsTo: to("a") };
		await expect(writeAsUser(world, descriptor, both)).rejects.toThrow("does not exist");
		await lab.run(next.write(thing("a")));
		await writeAsUser(world, descriptor, both);
		await expect(lab.run(next.delete(next.id(Thing, "a")))).rejects.toThrow("is referenced by");
		const { outgoing = [] } = (await beta.shadow(w)) ?? {};
		const uids = [alpha.info.uid, next.info.uid];
		expect(outgoing.map(({ deploymentUid }) => deploymentUid)).toEqual(uids);
	});
});

describe("a deployment that was dropped", () => {
	it("is not recorded as a holder of an owner, not even by a server that has not seen that", async () => {
		const { lab, alpha, beta, a, w, uid } = await twoServices();
		const { dropped } = alpha.current.constraints.context;
		await lab.run(dropped.drop(beta.info.uid));
		dropped.assertNotDropped = () => {};
		const owner = lab.keyOf(alpha, alpha.id(Thing, "a"));
		const ownerships = [{ owner, ownerUid: uid, ownee: lab.keyOf(beta, w), owneeUid: "01W" }];
		const route = { from: deployedOf(beta.info), toUid: alpha.info.uid };
		const { verdicts } = await lab.run(
			lab.client(beta, alpha).checkMetaOwners({ route, ownerships }),
		);
		expect(verdicts).toEqual([Verdict.UNSPECIFIED]);
		expect((await alpha.shadow(lab.idOf(a)))?.ownees ?? []).toEqual([]);
	});
});
