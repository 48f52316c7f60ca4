import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { newUlid } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { deriveReferences } from "../schema/derive-references.ts";
import { nameOfKey } from "../shadow/resource-key.ts";
import { anyone } from "./anyone.fixture.ts";
import type { LabDeployment } from "./lab.fixture.ts";
import {
	applyDeletion,
	beginDeletion,
	type Init,
	lostAndKept,
	nextSchema,
	type Rules,
	referenced,
	type World,
} from "./shared-targets.fixture.ts";
import { to, widget } from "./things.fixture.ts";

const someUid: unknown = expect.stringMatching(/./);

const { BLOCK, CASCADE, UNSET } = OnDelete;

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
		expect((await recorded()).get("likes")?.targetUid).toBe("");
		const { descriptor, pass } = nextSchema(world, { needs: CASCADE, likes: UNSET });
		await lab.run(pass.begin());
		await beginDeletion(world, alpha);
		const before = await beta.read(w);
		await applyDeletion(world, descriptor, "needs");
		expect(await beta.read(w)).toEqual(before);
		expect((await recorded()).get("likes")?.targetUid).toBe("");
	});

	describe("whose new rule a third field gets too", () => {
		const fields = { needs: to("a"), belongsTo: to("a"), likes: [to("a")] };
		const rules = { needs: CASCADE, belongs_to: CASCADE, likes: UNSET };

		/** A schema has begun to give the field that holds the target the rule of another one, and UNSET to the field without. */
		async function begun() {
			const before = { needs: UNSET, likes: BLOCK, belongs_to: undefined };
			const world = await referenced({ likes: [to("a")] }, before);
			const alpha = await lostAndKept(world);
			await world.lab.run(world.beta.write(widget("w", fields)));
			const next = nextSchema(world, rules);
			await world.lab.run(next.pass.begin());
			await beginDeletion(world, alpha);
			return { world, alpha, next };
		}

		it("is not cleared either", async () => {
			const { world, next } = await begun();
			const before = await world.beta.read(world.w);
			await applyDeletion(world, next.descriptor, "needs");
			expect(await world.beta.read(world.w)).toEqual(before);
		});

		it("leaves the target to the one that has it", async () => {
			const { world, alpha, next } = await begun();
			await world.lab.run(next.pass.complete(never));
			const { needs, belongs_to, likes } = Object.fromEntries(await world.recorded());
			expect(needs).toMatchObject({ rule: CASCADE, targetUid: someUid });
			expect(belongs_to).toMatchObject({ rule: CASCADE, targetUid: "" });
			expect(likes).toMatchObject({ rule: UNSET, targetUid: "" });
			await world.restartBeta(next.types);
			await world.lab.pass(600_000);
			expect(await alpha.read(world.a)).toBeUndefined();
			expect(await world.beta.read(world.w)).toBeUndefined();
		});
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
