import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { newUlid } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { SubscribedDeletingHandler } from "../controller/subscribed-deleting-handler.ts";
import { Action, operatorsOf, restore } from "../deployments/settling.fixture.ts";
import { deriveReferences } from "../schema/derive-references.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { nameOfKey } from "../shadow/resource-key.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import { anyone } from "./anyone.fixture.ts";
import { Lab, type LabDeployment } from "./lab.fixture.ts";
import { thing, to, widget } from "./things.fixture.ts";

const { BLOCK, CASCADE, UNSET } = OnDelete;

type Rules = Parameters<typeof withRules>[1];
type Init = Parameters<typeof widget>[1];

/** `alpha` has the thing `a`, and the widget `w` of beta references it. */
async function referenced(init: Init, rules: Rules = {}) {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const types = [withRules(Widget, rules)];
	const beta = await lab.add({
		...{ name: "beta", service: "beta", region: "r1" },
		...{ types, foreignTypes: [Thing] },
	});
	const [a, w] = [alpha.id(Thing, "a"), beta.id(Widget, "w")];
	await lab.run(alpha.write(thing("a")));
	await lab.run(beta.write(widget("w", init)));
	await lab.pass(3_000);
	return {
		...{ lab, alpha, beta, a, w },
		/** What the shadow of the widget records, by field. */
		recorded: async () =>
			new Map(((await beta.shadow(w))?.outgoing ?? []).map((each) => [each.path, each])),
		async restartBeta(next = types): Promise<void> {
			beta.crash();
			Object.assign(beta.spec, { types: next });
			await lab.run(beta.start());
		},
	};
}

type World = Awaited<ReturnType<typeof referenced>>;

/** A restore of alpha has lost `a`, operators keep the references to it, and it is created again. */
async function lostAndKept(world: World): Promise<LabDeployment> {
	const { lab, alpha, beta } = world;
	const restored = await restore(lab, alpha);
	const { uid } = restored.info;
	const operators = operatorsOf(lab, beta);
	const missing = await operators.missing(uid);
	expect(missing).toHaveLength(1);
	await operators.settle(uid, Action.KEEP, missing);
	await lab.run(restored.write(thing("a")));
	return restored;
}

/** A next schema of beta, whose pass can begin. */
function nextSchema({ beta }: World, rules: Rules) {
	const types = [withRules(Widget, rules)];
	const descriptor = new ServiceDescriptor({ types, foreignTypes: [Thing], service: "beta" });
	const pass = new SchemaPass({ ...beta.current.constraints.context, descriptor });
	return { types, descriptor, pass };
}

/** Deletes `a`, which only begins: beta does not release it. */
async function beginDeletion({ lab, a }: World, alpha: LabDeployment): Promise<void> {
	await lab.run(alpha.delete(a));
	expect((await alpha.shadow(a))?.lifecycle).toBe(Lifecycle.DELETING);
}

/** Beta has released the deleted `a` by the rule of the field that held it, which has left the widget. */
async function expectReleased({ beta, a, w }: World, alpha: LabDeployment): Promise<void> {
	expect(await alpha.read(a)).toBeUndefined();
	expect(await beta.read(w)).toBeDefined();
}

const never = new AbortController().signal;

describe("a field without a target, beside another field of the resource that has it", () => {
	const fields: [string, "belongsTo" | "needs"][] = [
		["CASCADE", "belongsTo"],
		["BLOCK", "needs"],
	];

	it.each(fields)(
		"takes no part in the deletion of the target, which the other one holds (%s)",
		async (_rule, field) => {
			const world = await referenced({ [field]: to("a") });
			const { lab, beta } = world;
			const alpha = await lostAndKept(world);
			await lab.run(beta.write(widget("w", { [field]: to("a"), likes: [to("a")] })));
			await beginDeletion(world, alpha);
			await lab.pass(600_000);
			await expectReleased(world, alpha);
		},
	);

	it.each(fields)("takes no part in it after a restart either (%s)", async (_rule, field) => {
		const world = await referenced({ [field]: to("a") });
		const { lab, beta } = world;
		const alpha = await lostAndKept(world);
		await lab.run(beta.write(widget("w", { [field]: to("a"), likes: [to("a")] })));
		await beginDeletion(world, alpha);
		await world.restartBeta();
		await lab.pass(600_000);
		await expectReleased(world, alpha);
	});

	it.each(fields)("takes no part in it when it is looked up (%s)", async (_rule, field) => {
		const world = await referenced({ [field]: to("a") });
		const { lab, beta, w } = world;
		const alpha = await lostAndKept(world);
		await lab.run(beta.write(widget("w", { [field]: to("a"), likes: [to("a")] })));
		await beginDeletion(world, alpha);
		const { context } = beta.current.constraints;
		await lab.run(deriveReferences(context, nameOfKey(lab.keyOf(beta, w))));
		await lab.pass(600_000);
		await expectReleased(world, alpha);
	});

	it("is not cleared with the other one while a new schema is incomplete", async () => {
		const world = await referenced({ likes: [to("a")] }, { needs: UNSET, likes: BLOCK });
		const { lab, beta, w, recorded } = world;
		const alpha = await lostAndKept(world);
		await lab.run(beta.write(widget("w", { needs: to("a"), likes: [to("a")] })));
		const { targetUid = "", deploymentUid = "", target } = (await recorded()).get("needs") ?? {};
		expect(targetUid).not.toBe("");
		expect((await recorded()).get("likes")?.targetUid).toBe("");
		const { descriptor, pass } = nextSchema(world, { needs: CASCADE, likes: UNSET });
		await lab.run(pass.begin());
		await beginDeletion(world, alpha);
		const before = await beta.read(w);
		const context = { ...beta.current.constraints.context, descriptor };
		const handler = new SubscribedDeletingHandler(context, beta.withDescriptor(descriptor));
		if (target === undefined) {
			throw new Error("the target is not recorded");
		}
		await lab.run(handler.handle({ target, targetUid, deploymentUid }));
		expect(await beta.read(w)).toEqual(before);
		expect((await recorded()).get("likes")?.targetUid).toBe("");
	});

	it.each<[string, Rules, Init]>([
		["CASCADE", { belongs_to: undefined }, { belongsTo: to("a"), likes: [to("a")] }],
		["BLOCK", { needs: undefined }, { needs: to("a"), likes: [to("a")] }],
	])("takes no part in it if a new schema adds the field (%s)", async (_rule, before, init) => {
		const world = await referenced(init, before);
		const { lab, alpha } = world;
		const { pass, types } = nextSchema(world, {});
		await lab.run(pass.begin());
		await beginDeletion(world, alpha);
		await lab.run(pass.complete(never));
		expect((await world.recorded()).get("likes")?.targetUid).not.toBe("");
		await world.restartBeta(types);
		await lab.pass(600_000);
		await expectReleased(world, alpha);
	});

	it("takes no part in it if a new schema changes the rule of the other one", async () => {
		const world = await referenced({ belongsTo: to("a") });
		const { lab, beta, recorded } = world;
		const alpha = await lostAndKept(world);
		await lab.run(beta.write(widget("w", { belongsTo: to("a"), likes: [to("a")] })));
		const { pass } = nextSchema(world, { likes: BLOCK });
		await lab.run(pass.begin());
		await beginDeletion(world, alpha);
		const { likes, belongs_to: lost } = Object.fromEntries(await recorded());
		await lab.run(pass.complete(never));
		expect((await recorded()).get("belongs_to")).toEqual(lost);
		expect((await recorded()).get("likes")).toEqual({ ...likes, rule: BLOCK });
	});

	it("takes no part in it if a new schema gives it the rule of the other one, and that another", async () => {
		const world = await referenced({ belongsTo: to("a") });
		const { lab, beta, recorded } = world;
		const alpha = await lostAndKept(world);
		await lab.run(beta.write(widget("w", { belongsTo: to("a"), likes: [to("a")] })));
		const { pass, types } = nextSchema(world, { belongs_to: UNSET, likes: CASCADE });
		await lab.run(pass.begin());
		const before = (await recorded()).get("belongs_to");
		await beginDeletion(world, alpha);
		await lab.run(pass.complete(never));
		expect((await recorded()).get("belongs_to")).toEqual({ ...before, rule: UNSET });
		await world.restartBeta(types);
		await lab.pass(600_000);
		expect(await alpha.read(world.a)).toBeUndefined();
	});

	it.each<[string, Rules]>([
		["the same", {}],
		["another", { needs: UNSET }],
	])("does not take over its rule when a user clears that, by %s schema", async (_, rules) => {
		const world = await referenced({ belongsTo: to("a") });
		const { lab, beta, a, w, recorded } = world;
		const alpha = await lostAndKept(world);
		await lab.run(beta.write(widget("w", { belongsTo: to("a"), needs: to("a") })));
		const missing = { targetUid: "", missing: { isKept: true } };
		expect((await recorded()).get("belongs_to")).toMatchObject(missing);
		const { pass, descriptor } = nextSchema(world, rules);
		await lab.run(pass.begin());
		const stored = await beta.read(w);
		const { data } = widget("w", { belongsTo: to("a") });
		if (stored === undefined || data === undefined) {
			throw new Error("the widget has no data");
		}
		const resource = { ...stored, generation: newUlid(lab.runtime), data };
		const put = { op: "put", resource, expectedVersion: stored.version } as const;
		await lab.run(beta.withDescriptor(descriptor).commit([put], { caller: anyone }));
		// The target may have been looked up by now.
		expect([...(await recorded()).values()]).toMatchObject([{ path: "belongs_to", rule: CASCADE }]);
		await lab.run(alpha.delete(a));
		await lab.pass(60_000);
		expect(await alpha.read(a)).toBeUndefined();
	});

	it("keeps what it has lost when the deployment of the other one's target is deleted", async () => {
		const world = await referenced({ likes: [to("a")] });
		const { lab, beta, recorded } = world;
		const alpha = await lostAndKept(world);
		const lost = (await recorded()).get("likes");
		await lab.run(beta.write(widget("w", { likes: [to("a")], needs: to("a") })));
		lab.retire(alpha);
		await lab.pass(900_000);
		expect((await recorded()).get("likes")).toEqual(lost);
		expect((await recorded()).get("needs")?.targetUid).not.toBe("");
	});
});
